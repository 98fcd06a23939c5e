"""Files and run folders that are written whole or not at all."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from frpcag.runtime.signals import hold_signals

logger = logging.getLogger(__name__)

RUN_FILE = "run.json"


@contextmanager
def atomic_file(path: str | os.PathLike) -> Iterator[Path]:
    """Give the path of a file to write, of the same ending, that becomes ``path`` if the block ends well.

    Parameters
    ----------
    path : path
        The file to make or to replace. Whatever ends the block leaves the one that was there.

    Yields
    ------
    Path
        A file beside ``path`` that does not exist yet.
    """
    target = Path(path)
    partial = target.with_name(f"{target.stem}.partial-{secrets.token_hex(4)}{target.suffix}")
    try:
        yield partial
        partial.replace(target)
    finally:
        with hold_signals():
            partial.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: str | os.PathLike, *, overwrite: bool = False) -> Iterator[Path]:
    """Give a temporary folder that becomes ``path`` if the block ends well, and vanishes if it does not.

    Parameters
    ----------
    path : path
        The folder to make; parents that are missing are made too.
    overwrite : bool, default=False
        Replace an existing ``path``, if it is a run folder: one that holds a ``run.json``. Any other
        existing file or folder is refused, so that nothing but a run is ever deleted.

    Yields
    ------
    Path
        A folder beside ``path``, named ``<name>.partial-<random>``, to write to.

    Raises
    ------
    FileExistsError
        When ``path`` exists and may not be replaced; nothing has been written then.

    Notes
    -----
    Any exception, ``KeyboardInterrupt`` included, removes the temporary folder and leaves what was at
    ``path``; signals wait while it is removed or put in place. A rename puts the new folder in place. To
    replace an old one takes two renames, since operating systems do not swap folders portably: a power cut
    between them leaves both folders whole, under other names.

    Examples
    --------
    >>> import os, tempfile
    >>> from frpcag.data import atomic_folder
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     with atomic_folder(os.path.join(parent, "run")) as folder:
    ...         _ = (folder / "run.json").write_text("{}")
    ...     os.listdir(parent), os.listdir(os.path.join(parent, "run"))
    (['run'], ['run.json'])
    """
    target = Path(os.path.abspath(path))
    _check_free(path, overwrite)
    made = _make_parents(target)
    partial = _sibling(target, "partial")
    try:
        partial.mkdir()
        yield partial
        _check_free(path, overwrite)
        with hold_signals():
            _put_in_place(partial, target)
    except BaseException:
        with hold_signals():
            shutil.rmtree(partial, ignore_errors=True)
            for parent in made:
                with suppress(OSError):  # not empty: someone else uses it by now
                    parent.rmdir()
        raise


def _check_free(path: str | os.PathLike, overwrite: bool) -> None:
    target = Path(path)
    if not os.path.lexists(target):
        return
    if not overwrite:
        raise FileExistsError(f"path={target} exists; pass another path, or overwrite=True to replace a run.")
    if target.is_symlink() or not (target / RUN_FILE).is_file():
        raise FileExistsError(
            f"path={target} is not a run folder (a real folder that holds {RUN_FILE}), so overwrite=True "
            "does not apply to it; pass another path, or delete it yourself."
        )


def _make_parents(target: Path) -> list[Path]:
    """Make the missing parents of ``target`` and return them, innermost first."""
    missing = [parent for parent in target.parents if not parent.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    return missing


def _sibling(target: Path, kind: str) -> Path:
    # Not tempfile.mkdtemp: its folders are closed to everyone else, and the run folder would stay so.
    return target.with_name(f"{target.name}.{kind}-{secrets.token_hex(4)}")


def _put_in_place(partial: Path, target: Path) -> None:
    if not target.exists():
        partial.rename(target)
        return
    old = _sibling(target, "partial-old")
    try:
        target.rename(old)
        partial.rename(target)
        shutil.rmtree(old, ignore_errors=True)
    except BaseException:
        if not target.exists():
            old.rename(target)
        shutil.rmtree(old, ignore_errors=True)
        raise
    if old.exists():
        logger.warning("The replaced run could not be deleted; it is left in %s.", old)
