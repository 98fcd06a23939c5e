"""The built package as a stranger gets it: run by ``make package`` with the Python of an empty environment.

``check_package.py REPOSITORY [EXTRA]``: without an extra, the library alone is tried; with one, what it is for.
"""

import importlib
import os
import pkgutil
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import frpcag

OPTIONAL = {"av", "dask", "distributed", "h5py", "pandas", "pyarrow", "torch", "triton", "umap"}
OPTIONAL |= {"networkx", "zarr", "fsspec", "igraph", "anndata"}
X = np.repeat(np.random.default_rng(0).normal(size=(3, 12)), 20, axis=0).astype(np.float32)


def command(*arguments: str) -> None:
    """Run the installed ``frpcag``."""
    run = subprocess.run([str(Path(sys.executable).with_name("frpcag")), *arguments], capture_output=True, text=True)
    assert run.returncode == 0, f"frpcag {' '.join(arguments)}: {run.stdout}{run.stderr}"


def check_it_is_the_installed_one(repository: Path) -> None:
    assert repository / "src" not in Path(frpcag.__file__).parents, f"{frpcag.__file__} is not the installed one"
    assert (Path(frpcag.__file__).parent / "py.typed").exists()


def check_modules_import_without_extras() -> None:
    for module in pkgutil.walk_packages(frpcag.__path__, "frpcag."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if (error.name or "").split(".")[0] not in OPTIONAL:
                raise


def check_missing_extras_are_named() -> None:
    tries = {
        "frpcag[gpu]": lambda: frpcag.FRPCAG(backend="torch").fit(X),
        "frpcag[dask]": lambda: frpcag.FRPCAG(backend="dask").fit(X),
    }
    for words, call in tries.items():
        message = ""
        try:
            call()
        except ImportError as error:
            message = str(error)
        assert words in message, f"{words} is not what is asked for: {message!r}"


def check_the_readme(repository: Path) -> None:
    """Run the first Python of the README, word for word, and the first fit of the command line."""
    blocks = re.findall(r"```python\n(.*?)```", (repository / "README.md").read_text(), flags=re.DOTALL)
    exec(compile(blocks[0], "README.md", "exec"), {})
    np.savetxt("data.csv", X, delimiter=",")
    command("info")
    command("fit", "data.csv", "--clusters", "3", "--output", "run")
    assert Path("run", "report.html").exists()
    frpcag.FRPCAG().fit(X).report("fit.html")
    assert "</html>" in Path("fit.html").read_text()


def check_io() -> None:
    import pandas as pd

    pd.DataFrame(X, columns=[f"f{i}" for i in range(12)]).to_parquet("data.parquet")
    from frpcag.tables import read_matrix

    assert np.asarray(read_matrix("data.parquet")[0]).shape == X.shape


def check_video() -> None:
    from frpcag.video.encode import video_writer
    from frpcag.video.frames import read_frames

    with video_writer("clip.mp4") as write:
        for frame in np.random.default_rng(0).integers(0, 255, (6, 32, 32), dtype=np.uint8):
            write(frame)
    assert read_frames("clip.mp4").shape[:3] == (6, 32, 32)
    command("video", "clip.mp4")


def check_gpu() -> None:
    import torch

    assert isinstance(frpcag.FRPCAG().fit(torch.from_numpy(X)).low_rank_, torch.Tensor)


def check_dask() -> None:
    import dask.array as da

    model = frpcag.FRPCAG(backend="dask").fit(da.from_array(X, chunks=(30, 12)))
    assert model.low_rank_.compute().shape == X.shape


def check_graphs() -> None:
    graph = frpcag.build_graph(X)
    assert graph.to_networkx().number_of_nodes() == graph.to_igraph().vcount() == len(X)


def check_anndata() -> None:
    from anndata import AnnData

    from frpcag.anndata import denoise

    counts = AnnData(np.random.default_rng(0).poisson(2.0, (60, 30)).astype(np.float32))
    denoise(counts, n_components=3, n_neighbors=5)
    assert counts.obsm["X_frpcag"].shape == (60, 3)


CHECKS = {"io": check_io, "video": check_video, "gpu": check_gpu, "dask": check_dask}
CHECKS |= {"graphs": check_graphs, "anndata": check_anndata}


def main() -> None:
    repository = Path(sys.argv[1]).resolve()
    extra = sys.argv[2] if len(sys.argv) > 2 else None
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        check_it_is_the_installed_one(repository)
        if extra is None:
            check_modules_import_without_extras()
            check_missing_extras_are_named()
            check_the_readme(repository)
        else:
            CHECKS[extra]()
        os.chdir(repository)
    print(f"frpcag {frpcag.__version__} from {'its wheel' if extra is None else f'frpcag[{extra}]'}: fine")


if __name__ == "__main__":
    main()
