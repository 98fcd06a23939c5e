"""Checkpoints of a block-wise solve in a folder that all workers reach: written whole, the last one never touched."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from frpcag.runtime.tasks import Layout

Array = np.ndarray

_MANIFEST = "complete.json"


class Checkpoint:
    """Blocks of arrays in a folder of the user's, one file a block.

    A save is a folder of its own; its manifest is written last, so a save without one never happened. The one before
    is deleted only then.

    Parameters
    ----------
    url : str
        A folder, local or shared, or any address that fsspec knows, such as ``s3://bucket/name``. Every worker must
        reach it.
    """

    def __init__(self, url: str) -> None:
        self.url = str(url).rstrip("/")

    def manifest(self, name: str) -> dict[str, Any] | None:
        """Return what was noted with a save; None if there is no complete one."""
        files, root = _open_folder(self.url)
        path = f"{root}/{name}/{_MANIFEST}"
        return json.loads(files.cat_file(path)) if files.exists(path) else None

    def steps(self) -> list[int]:
        """Return the solver steps with a complete save, ascending."""
        files, root = _open_folder(self.url)
        if not files.exists(root):
            return []
        files.invalidate_cache()
        names = [path.rstrip("/").rsplit("/", 1)[-1] for path in files.ls(root, detail=False)]
        steps = sorted(int(name[5:]) for name in names if name.startswith("step-") and name[5:].isdigit())
        return [step for step in steps if self.manifest(step_name(step)) is not None]

    def save(self, name: str, layout: Layout, parts: Sequence[Any], note: dict[str, Any]) -> None:
        """Write every block (a result that is a dict of arrays), then the manifest.

        Raises
        ------
        OSError
            The store is full or cannot be written to; what was saved before is still there.
        """
        files, root = _open_folder(self.url)
        try:
            files.makedirs(f"{root}/{name}", exist_ok=True)
            paths = [f"{self.url}/{name}/{j}.npz" for j in range(len(parts))]
            layout.cluster.gather(layout.map(_write, paths, parts))
            files.pipe_file(f"{root}/{name}/{_MANIFEST}", json.dumps(note).encode())
        except OSError as error:
            self.drop(name)
            steps = self.steps()
            left = f"the checkpoint of step {steps[-1]} is intact" if steps else "there is no earlier checkpoint"
            raise OSError(
                error.errno,
                f"checkpoint={self.url!r} could not be written ({name}: {error}); {left}. Free some space and make the "
                "same call again to go on from there, or pass another folder.",
            ) from error

    def load(self, name: str, layout: Layout) -> list[Any]:
        """Return the saved blocks, results of tasks that depend on nothing but the store."""
        paths = [f"{self.url}/{name}/{j}.npz" for j in range(len(layout.sizes))]
        return layout.map(_read, paths)

    def drop(self, name: str) -> None:
        """Delete a save, its manifest first."""
        files, root = _open_folder(self.url)
        for path in (f"{root}/{name}/{_MANIFEST}", f"{root}/{name}"):
            if files.exists(path):
                files.rm(path, recursive=True)


def step_name(step: int) -> str:
    """Return the name of the save of a solver step."""
    return f"step-{step:06d}"


def _open_folder(url: str) -> tuple[Any, str]:
    import fsspec

    files, root = fsspec.core.url_to_fs(url)
    return files, root.rstrip("/")


def _write(path: str, arrays: dict[str, Array]) -> None:
    import fsspec

    with fsspec.open(path, "wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def _read(path: str) -> dict[str, Array]:
    import fsspec

    with fsspec.open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def as_text(values: Sequence[Any]) -> str:
    """Return a digest of arrays, numbers and words, to tell one fit from another."""
    import hashlib

    digest = hashlib.sha256()
    for value in values:
        buffer = io.BytesIO()
        if isinstance(value, np.ndarray):
            np.save(buffer, value, allow_pickle=False)
        digest.update(buffer.getvalue() or repr(value).encode())
    return digest.hexdigest()
