"""New rows against a fitted model: known again, judged cell by cell, and cleaned with the fitted rows held fixed.

A fitted model of any kind of data comes in, and rows of any kind; `answers_of` says what answers.
"""

from frpcag.rows.answers import answers_of, inverted
from frpcag.rows.linked import Near
from frpcag.rows.model import RowModel
from frpcag.rows.terms import RowTerms, solve_linked

__all__ = ["Near", "RowModel", "RowTerms", "answers_of", "inverted", "solve_linked"]
