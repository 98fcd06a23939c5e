"""Print what `read_table` makes of 25 messy files: a table of the file, the arguments and the outcome.

python benchmarks/messy_files.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from frpcag.tables import read_table

ROWS = "1,2\n3,4\n5,6\n"
# What it is, the bytes of the file, the arguments.
FILES: list[tuple[str, bytes, dict[str, Any]]] = [
    ("plain numbers", ROWS.encode(), {}),
    ("a line of names", ("a,b\n" + ROWS).encode(), {}),
    ("semicolons and decimal commas", b"a;b\n1,5;2\n3;4,5\n", {"decimal": ","}),
    ("the same, without being told", b"a;b\n1,5;2\n3;4,5\n", {}),
    ("? for missing", b"a,b\n1,?\n3,4\n5,6\n", {"missing": "?"}),
    ("the same, without being told", b"a,b\n1,?\n3,4\n5,6\n", {}),
    ("-999 for missing", b"a,b\n1,-999\n3,4\n", {"missing": "-999"}),
    ("empty cells, NA, NULL, #N/A", b"a,b\n1,\nNA,4\nNULL,#N/A\n2,3\n", {}),
    ("an id and a date", b"id,date,a\n7,2024-05-01,1\n8,2024-05-02,2\n", {}),
    ("a named id column", b"a,patient\n1,20\n2,21\n", {"id": "patient"}),
    ("text and categories", b"site,note,a\nn,x y,1\ns,z,2\nn,w,3\n", {}),
    ("truth values", b"on,a\ntrue,1\nfalse,2\n", {}),
    ("numbers with units", b"w,a\n12 kg,1\n13 kg,2\n", {}),
    ("two columns of one name", b"a,a\n1,2\n3,4\n", {}),
    ("names that are years", b"id,2019,2020\nx,1,2\ny,3,4\n", {}),
    ("ids but no names", b"P1,1,2\nP2,3,4\n", {}),
    ("a row index without a name", b",a\n0,5\n1,6\n", {}),
    ("a delimiter at the end of lines", b"a,b,\n1,2,\n3,4,\n", {}),
    ("tabs", b"a\tb\n1\t2\n", {}),
    ("bars", b"a|b\n1|2\n", {}),
    ("white space", b"a   b\n1   2\n3   4\n", {}),
    ("UTF-16 with its mark", "größe,b\n1,2\n".encode("utf-16"), {}),
    ("Latin-1", "größe,b\n1,2\n".encode("latin-1"), {"encoding": "latin-1"}),
    ("the same, without being told", "größe,b\n1,2\n".encode("latin-1"), {}),
    ("a title above the names", b"measured in May\na,b\n1,2\n", {}),
]


def outcome(content: bytes, arguments: dict[str, Any]) -> str:
    """Return what a user gets, in a line."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.csv")
        path.write_bytes(content)
        try:
            table = read_table(path, **arguments)
        except ValueError as error:
            return "refused: " + str(error).replace(f"{folder}/", "")
    ids = "" if table.ids is None else f"; ids {', '.join(table.ids)}"
    return f"{table.X.tolist()}{ids}" + "".join(f"; {notice}" for notice in table.notices)


def main() -> None:
    """Print the table."""
    print("| file | arguments | what it gives |\n|---|---|---|")
    for what, content, arguments in FILES:
        told = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
        print(f"| {what} | {told} | {outcome(content, arguments)} |".replace("\n", " "))


if __name__ == "__main__":
    main()
