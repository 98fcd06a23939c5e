"""How long ``import frpcag``, its main class and ``frpcag --version`` take, and which modules cost most.

``python benchmarks/import_time.py``: each line is the best of five fresh processes, in seconds, beside an empty Python;
below it the ten modules with the largest time of their own, from ``python -X importtime``.
"""

from __future__ import annotations

import re
import subprocess
import sys

from machine import best_of

REPEATS, SHOWN = 5, 10
# Words of the interpreter for each line of the table.
CALLS = {
    "python -c pass": ("-c", "pass"),
    "import frpcag": ("-c", "import frpcag"),
    "from frpcag import FRPCAG": ("-c", "from frpcag import FRPCAG"),
    "frpcag --version": ("-m", "frpcag.cli.main", "--version"),
    "frpcag --help": ("-m", "frpcag.cli.main", "--help"),
}


def run(words: tuple[str, ...], *options: str) -> str:
    """Return what a fresh interpreter writes on stderr."""
    done = subprocess.run([sys.executable, *options, *words], capture_output=True, text=True, check=True)
    return done.stderr


def dearest(words: tuple[str, ...]) -> list[tuple[str, float, float]]:
    """Return the modules of the largest times of their own: name, own and total milliseconds."""
    lines = re.findall(r"import time:\s+(\d+) \|\s+(\d+) \|\s+(\S+)", run(words, "-X", "importtime"))
    found = [(name, int(own) / 1000, int(total) / 1000) for own, total, name in lines]
    return sorted(found, key=lambda one: -one[1])[:SHOWN]


if __name__ == "__main__":
    for name, words in CALLS.items():
        print(f"{name:28} {best_of(lambda words=words: run(words), REPEATS):.3f} s", flush=True)
        if name == "python -c pass":
            continue
        for module, own, total in dearest(words):
            print(f"    {module:48} {own:7.1f} ms, with what it imports {total:7.1f} ms")
