"""What each command takes: its words, how they are read, and its help."""

from __future__ import annotations

import argparse
import ast
import math
import re
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from frpcag.cli.errors import InputError

# Each command is the module of this name, which is imported when it is called.
_OPTIONS, COMMANDS = tomllib.loads((Path(__file__).parent / "commands.toml").read_text(encoding="utf-8")).values()
_DEFAULTS = {"seed": 0, "every": 1, "fit_frames": 1000, "max_memory": 4.0, "threshold": "auto", "k": "auto", "set": {}}


def parse_value(text: str) -> Any:
    """Return what a word is in Python: a number, a size, a tuple, None, True, False; a word where it is none of them.

    Examples
    --------
    >>> from frpcag.cli.options import parse_value
    >>> parse_value("0.5"), parse_value("none"), parse_value("28x28"), parse_value("auto")
    (0.5, None, (28, 28), 'auto')
    """
    if size := re.fullmatch(r"(\d+)[xX](\d+)", text):
        return int(size[1]), int(size[2])
    try:
        return ast.literal_eval(text.capitalize() if text in ("none", "true", "false") else text)
    except (ValueError, SyntaxError):
        return text


def parse_resize(text: str) -> tuple[int, int] | float:
    """Return (height, width) from ``WxH``, or a factor.

    Examples
    --------
    >>> from frpcag.cli.options import parse_resize
    >>> parse_resize("320x240"), parse_resize("0.5")
    ((240, 320), 0.5)
    """
    value = parse_value(text)
    sizes = value[::-1] if isinstance(value, tuple) else (value,)
    if not all(isinstance(size, (int, float)) and 0 < size < math.inf for size in sizes):
        raise argparse.ArgumentTypeError(f"{text!r} must be WIDTHxHEIGHT, such as 320x240, or a factor, such as 0.5")
    return sizes if len(sizes) == 2 else sizes[0]


class _Set(argparse.Action):
    """Collect the parameters that ``--set`` names."""

    def __call__(self, parser, asked, words, option=None) -> None:
        name, equals, text = words.partition("=")
        if not equals:
            parser.error(f"argument --set: {words!r} must be NAME=VALUE, such as gamma1=0.5")
        asked.set = {**asked.set, name: parse_value(text)}


_TYPES: dict[str, Any] = {
    **dict.fromkeys(("seed", "jobs", "max_frames", "every", "fit_frames"), int),
    **dict.fromkeys(("clusters", "k", "n_components", "threshold", "feature_shape"), parse_value),
    "max_memory": float,
    "resize": parse_resize,
    "delimiter": lambda text: {"tab": "\t", "\\t": "\t", "space": " "}.get(text, text),
    "output": Path,
    "model": Path,
}


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are those of every other input."""

    def error(self, message: str) -> Any:
        raise InputError(f"{message}. See {self.prog} --help.")


def parse(name: str, words: list[str]) -> argparse.Namespace:
    """Return what the words behind a command ask for; ``--help`` prints its help and ends the process."""
    command = COMMANDS[name]
    parser = _Parser(
        prog=f"frpcag {name}",
        description=f"{command['help']}\n\n{command['more'].strip()}".strip(),
        epilog=f"example:\n  {command['example']}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(command=name, file=name, no_plots=False)
    flags: list[str] = []
    for title, options in command["options"].items():
        group = parser.add_argument_group(title)
        for option in options.split():
            spec, text = _OPTIONS[option]
            *names, last = spec.split()
            how: dict[str, Any] = {"action": "store_true"}
            if last.startswith("-"):
                names.append(last)
            else:
                how = {"metavar": last, "type": _TYPES.get(option, str), "default": _DEFAULTS.get(option)}
                how |= {"action": _Set} if option == "set" else {}
            flags += names
            group.add_argument(*(names or ["file"]), help=text.replace("%", "%%"), **how)
    parser.set_defaults(flags=frozenset(flags))
    asked, unknown = parser.parse_known_args(words)
    if unknown:
        word = unknown[0].partition("=")[0]
        near = get_close_matches(word, flags, 1)
        if not word.startswith("-"):
            parser.error(f"unexpected argument {word!r}")
        meant = f"did you mean {near[0]}? Else " if near else ""
        parser.error(f"no such option: {word}; {meant}parameters of the estimator go through --set NAME=VALUE")
    return asked
