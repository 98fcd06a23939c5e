"""Gather ``changes/*.md`` into CHANGELOG.md and delete them: ``python docs/gather_changes.py``.

The lines go under the version of ``src/frpcag/__init__.py``, one heading for each kind. Run it again when more lines
have arrived: it adds them to the same version.
"""

from __future__ import annotations

import re
import sys
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KINDS = {"feature": "New", "speed": "Faster", "fix": "Fixed", "docs": "Documentation"}


def version() -> str:
    """Return the version of the package, read without importing it."""
    found = re.search(r'__version__ = "(.+)"', (ROOT / "src/frpcag/__init__.py").read_text())
    assert found
    return found[1]


def lines_by_kind(files: list[Path]) -> dict[str, list[str]]:
    """Return the lines of change files under the heading of their kind."""
    found: dict[str, list[str]] = {heading: [] for heading in KINDS.values()}
    for file in files:
        kind = file.name.removesuffix(".md").rpartition(".")[2]
        if kind not in KINDS:
            raise ValueError(f"{file.name} must be called <slug>.<{'|'.join(KINDS)}>.md.")
        # One change a paragraph or a line that ends in a full stop; a line that goes on belongs to the one before.
        text = re.sub(r"(?<![.\n])\n(?!\n)", " ", file.read_text().strip())
        found[KINDS[kind]] += [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    return found


def gathered(changelog: str, lines: dict[str, list[str]], number: str, day: str) -> str:
    """Return the changelog with lines added to a version, whose section is made where there is none."""
    title = f"## {number} ("
    if title not in changelog:
        at = changelog.index("\n## ") + 1
        empty = "".join(f"### {heading}\n\n" for heading in lines)
        changelog = f"{changelog[:at]}{title}{day})\n\n{empty}{changelog[at:]}"
    start = changelog.index(title)
    end = changelog.find("\n## ", start)
    head, section, rest = (
        changelog[:start],
        changelog[start : end + 1 if end > 0 else None],
        changelog[end + 1 :] if end > 0 else "",
    )
    for heading, new in lines.items():
        before, mark, after = section.partition(f"### {heading}\n\n")
        section = before + mark + "".join(f"- {line}\n" for line in new if f"- {line}\n" not in section) + after
    section = re.sub(r"(\n- .*\n)(?=#)", r"\1\n", section)
    return head + section + rest


def main() -> int:
    """Write the changelog and delete what is in it now."""
    files = sorted(file for file in (ROOT / "changes").glob("*.md") if file.name != "README.md")
    page = ROOT / "CHANGELOG.md"
    page.write_text(gathered(page.read_text(), lines_by_kind(files), version(), date.today().isoformat()))
    for file in files:
        file.unlink()
    print(f"{len(files)} changes are in CHANGELOG.md under {version()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
