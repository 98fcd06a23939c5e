"""What went wrong, in one line and one exit code: 2 for the input, 130 for Ctrl-C, 1 for anything else."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from errno import ENOSPC, EPIPE
from pathlib import Path
from typing import TypeGuard

# Arguments of the library and the options that set them.
OPTIONS = {
    "n_clusters": "--clusters",
    "n_components": "--n-components",
    "feature_shape": "--feature-shape",
    "random_state": "--seed",
    "n_jobs": "--jobs",
    "key": "--key",
    "scale=True": "--scale",
}
# Arguments of read_table, which are common words: named as options only where a value follows.
_READING = re.compile(r"(?<![\w/.-])(columns|drop|id|missing|delimiter|decimal|encoding)=(?=['\"\d])")
# Whole words that are not part of a path.
_ARGUMENT = re.compile(rf"(?<![\w/.-])({'|'.join(OPTIONS)})(?![\w/-]|\.\w)")
# Characters that move the cursor, change colours or titles, or turn text around.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
# What a shell reports of a command that Ctrl-C ended: 128 and the number of the signal.
CTRL_C = 130


class InputError(Exception):
    """Bad input or usage: a file, an option or the output folder."""


def printable(text: str) -> str:
    r"""Return text for a terminal: names that come from a file must not steer it.

    Examples
    --------
    >>> from frpcag.cli.errors import printable
    >>> print(printable("red: " + chr(27) + "[31m"))
    red: \x1b[31m
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def in_option_words(message: str, flags: Collection[str]) -> str:
    """Return a message of the library on one line, with its arguments named as the options that the command has."""

    def named(found: re.Match[str]) -> str:
        option = OPTIONS[found[1]]
        return option if option in flags else found[1]

    message = _READING.sub(r"--\1 ", message)
    message = re.sub(
        r"^Found array with (\d) sample\(s\).*? minimum of (\d) is required.*$",
        r"X has \1 row, and rows are compared with each other; pass at least \2.",
        message,
    )
    message = re.sub(r"(?<=pass |heck )delimiter\b", "--delimiter", message)
    return " ".join(_ARGUMENT.sub(named, message).split())


@contextmanager
def input_errors(file: Path, flags: Collection[str]) -> Iterator[None]:
    """Turn what the library says about its arguments into an InputError."""
    from numpy.linalg import LinAlgError  # late: every command needs this module, and the help no NumPy

    try:
        yield
    except LinAlgError:  # a ValueError too, but no fault of the input
        raise
    except OSError as error:
        if error.strerror is None:  # one of ours, already in clear words
            raise InputError(str(error)) from error
        raise InputError(f"{file} cannot be read ({error.strerror}); check its permissions.") from error
    except (ValueError, ImportError) as error:
        message = in_option_words(str(error), flags)
        raise InputError(re.sub(r"(?<!')\bX\b(?!\.\w)", lambda _: file.name, message)) from error


def fails_to_print(error: BaseException) -> TypeGuard[OSError]:
    """Say whether standard output is closed or full: such errors of files are told as those of ``--output``."""
    return isinstance(error, OSError) and error.errno in (EPIPE, ENOSPC)


def exit_code(error: BaseException) -> int:
    """Return 2 for bad input or usage, 130 for Ctrl-C, 1 for the rest."""
    return CTRL_C if isinstance(error, KeyboardInterrupt) else 2 if isinstance(error, InputError) else 1


def error_line(error: BaseException) -> str:
    """Return the one line to show for an error."""
    if isinstance(error, InputError):
        text = str(error)
    elif isinstance(error, KeyboardInterrupt):
        text = "interrupted before there was a result; nothing was written."
    elif isinstance(error, MemoryError):
        said = str(error).partition(";")[0]  # behind it the library says how to go on, in its own words
        text = f"out of memory ({said}); pass --float32, fewer samples or fewer features."
    elif fails_to_print(error):
        text = f"standard output cannot be written ({error.strerror}); send it elsewhere. Folders are whole."
    else:
        text = f"unexpected {type(error).__name__}: {error}; run again with --debug to see where, and report it."
    return "error: " + printable(" ".join(text.split()))
