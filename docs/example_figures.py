"""Run the examples and keep what they print: ``python docs/example_figures.py``.

The pages quote some of these figures. This script writes ``results/examples.json``, with which `check_figures.py`
compares them. Without arguments it runs all examples, otherwise those that are named, such as ``first_fit``.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import runpy
import sys
import tempfile
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "results" / "examples.json"


def printed(path: Path) -> list[str]:
    """Return the lines that an example prints."""
    import matplotlib.pyplot as plt

    text = io.StringIO()
    with contextlib.redirect_stdout(text), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runpy.run_path(str(path))
    plt.close("all")
    return text.getvalue().splitlines()


def main(names: list[str]) -> None:
    """Run examples and write their lines."""
    import matplotlib

    matplotlib.use("Agg")
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    os.chdir(tempfile.mkdtemp())
    for path in sorted((ROOT / "examples").glob("plot_*.py")):
        name = path.stem.removeprefix("plot_")
        if not names or name in names:
            record[name] = printed(path)
            print(name, *record[name], sep="\n    ")
    RECORD.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
