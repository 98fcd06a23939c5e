"""New rows against a fitted model: known again, judged cell by cell, and cleaned with the fitted rows held fixed.

A fitted model of host arrays and rows that are checked come in; `RowModel` answers.
"""

from frpcag.rows.linked import Near
from frpcag.rows.model import RowModel

__all__ = ["Near", "RowModel"]
