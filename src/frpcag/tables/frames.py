"""Tables with types: parquet through PyArrow, h5ad through anndata; what is written again keeps types and the rest."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from frpcag.tables.arrays import check_matrix
from frpcag.tables.checks import dense, reading, refuse_outside, require_room
from frpcag.tables.kinds import Kind, NumberFormat, are_codes, kind_of_numbers
from frpcag.tables.source import New, Source

Array = np.ndarray


def read_parquet(path: Path, *, numbers: NumberFormat) -> Source:
    """Return the columns of a parquet file; the index of a data frame names the rows."""
    try:
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError(f"reading {path} needs pyarrow; install frpcag[io].") from error
    with reading(path):
        told = pq.read_metadata(path)
    require_room(path, told.num_rows * told.num_columns * 8)
    with reading(path):
        with pq.ParquetFile(path) as file:
            table = file.read()
        index = [name for name in (table.schema.pandas_metadata or {}).get("index_columns", []) if type(name) is str]
    if not table.num_rows or not table.num_columns:
        raise ValueError(f"{path} holds a table of shape {table.shape}, without entries; write it again.")
    kinds = [_kind(column, numbers) for column in table.columns]
    for name in index:
        j = table.schema.names.index(name)
        kinds[j] = replace(kinds[j], word="ids")

    def write(target: Path, new: New, dropped: set[int]) -> None:
        out, about = table, dict(table.schema.metadata or {})
        for j, (values, changed) in new.items():
            field, column = table.schema.field(j), table.column(j)
            fresh = pa.array(values.astype(np.float64), mask=np.isnan(values) | ~changed)
            try:
                fresh = fresh.cast(field.type)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # such as a mean in a column of integers
                field, column = field.with_type(pa.float64()), column.cast(pa.float64(), safe=False)
                about.update(_as_float(about, field.name))
            out = out.set_column(j, field, pc.if_else(pa.array(changed), fresh, column))
        out = out.select([j for j in range(out.num_columns) if j not in dropped])
        pq.write_table(out.replace_schema_metadata(about), target)

    return Source([str(name) for name in table.schema.names], table.columns, kinds, write)


def _as_float(about: dict[bytes, bytes], name: str) -> dict[bytes, bytes]:
    """Return what pandas wrote about its columns, one of which holds floats now."""
    told = json.loads(about.get(b"pandas", b'{"columns": []}'))
    for column in told["columns"]:
        if column["field_name"] == name:
            column.update(pandas_type="float64", numpy_type="float64")
    return {b"pandas": json.dumps(told).encode()} if b"pandas" in about else {}


def _kind(column: Any, numbers: NumberFormat) -> Kind:
    from pyarrow import float32, float64, types

    kind = column.type
    if types.is_boolean(kind):
        return kind_of_numbers(column.fill_null(False).to_numpy(), numbers)
    if any(test(kind) for test in (types.is_integer, types.is_floating, types.is_decimal, types.is_null)):
        values = column.cast(float32() if types.is_float32(kind) else float64(), safe=False).to_numpy()
        found = kind_of_numbers(values, numbers)
        return replace(found, word="codes") if types.is_integer(kind) and are_codes(values) else found
    words = {
        "categories": (types.is_dictionary,),
        "text": (types.is_string, types.is_large_string),
        "dates": (types.is_timestamp, types.is_date),
        "times of day": (types.is_time,),
    }
    word = next((word for word, tests in words.items() if any(test(kind) for test in tests)), str(kind))
    return Kind(word, example=repr(str(next((cell for cell in column if cell.is_valid), ""))))


def read_cells(path: Path, *, numbers: NumberFormat) -> Source:
    """Return the annotation of the cells of an AnnData file and its genes as columns."""
    try:
        import anndata
        import h5py  # anndata reads through it
    except ImportError as error:
        raise ImportError(f"reading {path} needs anndata; install frpcag[anndata].") from error
    with reading(path), h5py.File(path, "r") as file:
        refuse_outside(file, path)
        n_bytes = file["X"].nbytes if isinstance(file.get("X"), h5py.Dataset) else 0
    require_room(path, n_bytes)
    with reading(path):
        adata = anndata.read_h5ad(path)
        names = list(map(str, [*adata.obs, *adata.var_names]))
        X = check_matrix(dense(adata.X, path), path)
    n_obs = adata.obs.shape[1]

    def write(target: Path, new: New, dropped: set[int]) -> None:
        genes = [j for j in range(len(adata.var_names)) if j + n_obs not in dropped]
        out = adata[:, genes].copy()
        Z = np.column_stack([new[j + n_obs][0] if j + n_obs in new else X[:, j] for j in genes])
        out.X = type(adata.X)(Z) if sparse.issparse(adata.X) else Z
        out.obs = out.obs.drop(columns=[name for j, name in enumerate(adata.obs) if j in dropped])
        out.write_h5ad(target)

    return Source(
        names,
        [*(adata.obs[name] for name in adata.obs), *X.T],
        [*(Kind("annotation") for _ in adata.obs), *(kind_of_numbers(column, numbers) for column in X.T)],
        write,
        ids=np.array(adata.obs_names, dtype=str),
    )
