"""Frames of pandas, polars and PyArrow go in, and come out where ``set_output`` asks for them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from frpcag import FRPCAG

NAMES = ["a", "b", "c", "d"]


@pytest.fixture
def frame():
    """A frame of pandas with gaps in an extension type, and an index that is not 0, 1, ..."""
    X = np.random.default_rng(0).normal(size=(40, 4))
    frame = pd.DataFrame(X, columns=NAMES, index=[f"r{i}" for i in range(40)])
    frame["d"] = pd.array([None, *(10 * X[1:, 3]).astype(int)], dtype="Int64")
    return frame


@pytest.fixture
def matrix(frame):
    return frame.to_numpy(dtype=float, na_value=np.nan)


MAKERS = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: pl.from_pandas(frame),
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}
every_library = pytest.mark.parametrize("library", MAKERS)


@every_library
def test_a_frame_fits_like_its_numbers_and_its_names_are_noted(frame, matrix, library):
    model = FRPCAG(2).fit(MAKERS[library](frame))
    assert_array_equal(model.low_rank_, FRPCAG(2).fit(matrix).low_rank_)
    assert list(model.feature_names_in_) == NAMES


@every_library
@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_rows_come_back_as_the_frames_that_set_output_names(frame, library, output):
    given = MAKERS[library](frame)
    model = FRPCAG(2).fit(given)
    plain, embedding = model.denoise(given), model.transform(given)
    model.set_output(transform=output)
    cleaned, embedded = model.denoise(given), model.transform(given)
    kind = pd.DataFrame if output == "pandas" else pl.DataFrame
    assert isinstance(cleaned, kind)
    assert list(cleaned.columns) == NAMES
    assert_array_equal(cleaned.to_numpy(), plain)
    assert_array_equal(embedded.to_numpy(), embedding)
    assert list(model.inverse_transform(embedded.to_numpy()).columns) == NAMES


def test_the_index_of_pandas_is_kept(frame):
    model = FRPCAG(2).set_output(transform="pandas").fit(frame)
    assert list(model.denoise(frame[:5]).index) == ["r0", "r1", "r2", "r3", "r4"]


@every_library
def test_columns_in_another_order_are_refused(frame, library):
    model = FRPCAG(2).fit(frame)
    with pytest.raises(ValueError, match="feature names should match"):
        model.denoise(MAKERS[library](frame[["b", "a", "c", "d"]]))


def test_text_in_a_table_of_pyarrow_is_named(frame):
    table = pa.Table.from_pandas(frame.assign(site="north"), preserve_index=False)
    with pytest.raises(ValueError, match=r"hold no numbers: 'site' \(text\)"):
        FRPCAG().fit(table)


def test_a_column_without_values_is_named(frame):
    with pytest.raises(ValueError, match="column 'c' of X has no observed entry"):
        FRPCAG().fit(frame.assign(c=np.nan))


def test_categories_go_in_through_a_column_transformer(frame):
    """The recipe of the page on tables: one column of 0 and 1 for each category, beside the scaled numbers."""
    frame = frame.assign(site=["north", "south"] * 20)
    encode = ColumnTransformer([("site", OneHotEncoder(sparse_output=False), ["site"])], remainder="passthrough")
    encode.set_output(transform="pandas")
    embedding = make_pipeline(encode, FRPCAG(2)).fit_transform(frame)
    by_hand = np.column_stack(
        [frame["site"] == "north", frame["site"] == "south", frame[NAMES].to_numpy(float, na_value=np.nan)]
    )
    assert_allclose(embedding, FRPCAG(2).fit_transform(by_hand))


def test_an_infinite_entry_is_named_by_its_column():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 3)), columns=["temp", "flow", "ph"])
    frame.iloc[4, 1] = np.inf
    with pytest.raises(ValueError, match="X has 1 infinite entries, the first in column 'flow'"):
        FRPCAG(n_neighbors=3).fit(frame)
