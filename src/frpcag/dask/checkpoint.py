"""Checkpoints of a block-wise solve in a folder that all workers reach: written whole, the last one never touched."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np

from frpcag.dask.tasks import Layout
from frpcag.runtime.atomic import atomic_file

Array = np.ndarray

# Of the files; what another version has written is refused.
_VERSION = 6
_FOLDERS = re.compile(r"(prepared|step|clean)-[0-9]{6}-[0-9a-f]{8}")


@dataclass(frozen=True)
class Saved:
    """A complete save: where its blocks are, what they hold, and what was noted with them."""

    folder: str
    step: int
    digests: list[str]
    note: dict[str, Any]


class Checkpoint:
    """Blocks of arrays of one fit in a folder of the user's, one file a block.

    Every save has a folder of its own. Its manifest, ``<name>.json``, holds a digest of every block and of itself; it
    replaces the one before in a single move when all blocks are written, and only then are the blocks before deleted.
    Two clients may run the same fit in one folder: they save the same bits, and a block that one of them has deleted is
    a clear error of the other.

    Parameters
    ----------
    url : str
        A folder, local or shared, or any address that fsspec knows, such as ``s3://bucket/name``. Every worker must
        reach it.
    fit : str
        Digest of the data and of all that shapes the problem: a checkpoint of another fit is refused.
    """

    def __init__(self, url: str, fit: str) -> None:
        self.url = str(url).rstrip("/")
        self.fit = fit

    def claim(self) -> None:
        """Make the folder, and delete blocks that no manifest names: those of saves that broke off.

        Raises
        ------
        ValueError
            The folder holds another fit, or is damaged.
        """
        kept = {saved.folder for saved in map(self.saved, ("prepared", "step", "clean")) if saved is not None}
        files, root = _open_folder(self.url)
        try:
            files.makedirs(root, exist_ok=True)
        except OSError as error:
            raise OSError(error.errno, f"checkpoint={self.url!r} could not be written: {error}") from error
        files.invalidate_cache()
        for path in files.ls(root, detail=False):
            name = path.rstrip("/").rsplit("/", 1)[-1]
            if _FOLDERS.fullmatch(name) and name not in kept:
                self._drop(name)

    def saved(self, name: str) -> Saved | None:
        """Return the last complete save of a name; None if there is none.

        Raises
        ------
        ValueError
            It is of another fit or version, or its manifest is damaged.
        """
        content = self._read_json(name)
        if content is None:
            return None
        if content.get("version") != _VERSION:
            raise ValueError(
                f"checkpoint={self.url!r} was written by another version of frpcag; pass an empty folder, or delete "
                "this one."
            )
        if content["fit"] != self.fit:
            raise ValueError(
                f"checkpoint={self.url!r} holds a fit of other data, chunks or parameters; pass an empty folder, or "
                "delete this one."
            )
        if not _is_save(content, name):
            raise ValueError(_damaged(self.url, f"{name}.json does not describe a save"))
        return Saved(content["folder"], content["step"], content["digests"], content["note"])

    def save(self, name: str, layout: Layout, parts: Sequence[Any], *, step: int, note: dict[str, Any]) -> Saved:
        """Write every block (a result that is a dict of arrays), then the manifest; raise as `save_by`."""
        gather = layout.cluster.gather
        return self.save_by(
            lambda paths: gather(layout.map(write_block, paths, parts)), name, len(parts), step=step, note=note
        )

    def save_by(
        self, write: Callable[[list[str]], list[str]], name: str, n_blocks: int, *, step: int, note: dict[str, Any]
    ) -> Saved:
        """Let ``write`` write every block to its path by `write_block` and return the digests; then the manifest.

        Raises
        ------
        OSError
            The store is full or cannot be written to; what was saved before is still there.
        """
        files, root = _open_folder(self.url)
        before = self.saved(name)
        folder = f"{name}-{step:06d}-{secrets.token_hex(4)}"
        try:
            files.makedirs(f"{root}/{folder}", exist_ok=True)
            paths = [f"{self.url}/{folder}/{j}.npz" for j in range(n_blocks)]
            saved = Saved(folder, step, write(paths), note)
            self._write_json(name, {"version": _VERSION, "fit": self.fit, **vars(saved)})
        except BaseException as error:
            with suppress(OSError):
                self._drop(folder)
            if not isinstance(error, OSError):
                raise
            last = self.saved("step")
            left = "there is no earlier checkpoint"
            left = left if last is None else f"the checkpoint of step {last.step} is intact"
            raise OSError(
                error.errno,
                f"checkpoint={self.url!r} could not be written ({folder}: {error}); {left}. Free some space and make "
                "the same call again to go on from there, or pass another folder.",
            ) from error
        if before is not None:
            with suppress(OSError):  # the next claim deletes it
                self._drop(before.folder)
        return saved

    def load(self, saved: Saved, layout: Layout) -> list[Any]:
        """Return the saved blocks, results of tasks that depend on nothing but the store."""
        if len(saved.digests) != len(layout.sizes):
            raise ValueError(
                _damaged(self.url, f"{saved.folder} has {len(saved.digests)} blocks, not {len(layout.sizes)}")
            )
        paths = [f"{self.url}/{saved.folder}/{j}.npz" for j in range(len(layout.sizes))]
        return layout.map(_read, paths, saved.digests)

    def _write_json(self, name: str, content: dict[str, Any]) -> None:
        """Write a file whole: by a move on a file system, by the store itself elsewhere."""
        files, root = _open_folder(self.url)
        text = json.dumps({"content": content, "digest": joblib.hash(json.dumps(content))}).encode()
        path = f"{root}/{name}.json"
        if not _is_local(files):
            files.pipe_file(path, text)
            return
        with atomic_file(path) as partial, open(partial, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())

    def _read_json(self, name: str) -> dict[str, Any] | None:
        files, root = _open_folder(self.url)
        files.invalidate_cache()
        try:
            whole = json.loads(files.cat_file(f"{root}/{name}.json"))
            content = whole["content"]
            if whole["digest"] != joblib.hash(json.dumps(content)):
                raise ValueError("its content has changed")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(_damaged(self.url, f"{name}.json: {error}")) from error
        return content

    def _drop(self, folder: str) -> None:
        files, root = _open_folder(self.url)
        if files.exists(f"{root}/{folder}"):
            files.rm(f"{root}/{folder}", recursive=True)


def digest(arrays: dict[str, Array]) -> str:
    """Return a digest of arrays, the same however they lie in memory."""
    return joblib.hash({name: (A.shape, A.ravel()) for name, A in arrays.items()})


def _is_save(content: dict[str, Any], name: str) -> bool:
    """Say whether a manifest has what a save has; its folder will be read, and deleted one day."""
    folder, step, digests = (content.get(key) for key in ("folder", "step", "digests"))
    return (
        isinstance(folder, str)
        and _FOLDERS.fullmatch(folder) is not None
        and folder.startswith(f"{name}-")
        and type(step) is int
        and isinstance(digests, list)
        and all(isinstance(digest, str) for digest in digests)
        and isinstance(content.get("note"), dict)
    )


def _open_folder(url: str) -> tuple[Any, str]:
    import fsspec

    files, root = fsspec.core.url_to_fs(url)
    return files, root.rstrip("/")


def _is_local(files: Any) -> bool:
    from fsspec.implementations.local import LocalFileSystem

    return isinstance(files, LocalFileSystem)


def write_block(path: str, arrays: dict[str, Array]) -> str:
    """Write a block and return its digest."""
    import fsspec

    with fsspec.open(path, "wb", auto_mkdir=False) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
    return digest(arrays)


def _read(path: str, wanted: str) -> dict[str, Array]:
    """Return a block; raise ValueError unless it is what was written, whatever was done to it."""
    import zipfile

    import fsspec

    try:
        with fsspec.open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
            block = {name: arrays[name] for name in arrays.files}
        if digest(block) != wanted:
            raise ValueError("its content has changed")
    except FileNotFoundError:
        what = "it is gone; another client may have fitted in the folder"
    except (ValueError, KeyError, EOFError, NotImplementedError, zipfile.BadZipFile) as error:
        what = str(error) or type(error).__name__
    else:
        return block
    url, folder, name = path.rsplit("/", 2)
    raise ValueError(_damaged(url, f"{folder}/{name}: {what}"))


def _damaged(url: str, what: str) -> str:
    return f"checkpoint={url!r} is damaged ({what}); delete the folder, and the same call starts afresh."
