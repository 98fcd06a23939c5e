"""Text tables: names, gaps, delimiters, and errors that name the cell."""

import logging

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from frpcag.tables import read_matrix


@pytest.fixture
def read_text(tmp_path):
    def read(text, *, name="table.csv", encoding="utf-8"):
        (tmp_path / name).write_bytes(text.encode(encoding))
        return read_matrix(tmp_path / name)

    return read


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("1,2\n3,4\n", None),
        ("1,2\r\n3,4\r\n", None),
        ("1,2\n\n3,4", None),
        ("1;2\n3;4\n", None),
        ("1\t2\n3\t4\n", None),
        (" 1, 2\n 3, 4\n", None),
        ("a,b\n1,2\n3,4\n", ["a", "b"]),
        ('"a, first",b\n"1",2\n3,4\n', ["a, first", "b"]),
        ("\ufeffa,b\n1,2\n3,4\n", ["a", "b"]),
        ("\n\na;b\n1;2\n3;4\n", ["a", "b"]),
        ("1_2,3_4\n1,2\n3,4\n", ["1_2", "3_4"]),
        ("größe,b\n1,2\n3,4\n", ["größe", "b"]),
        (",a,b\n0,1,2\n1,3,4\n", ["a", "b"]),
        ('"","a","b"\n"1",1,2\n"2",3,4\n', ["a", "b"]),
    ],
)
def test_tables_with_and_without_names_are_read(read_text, text, names):
    X, read_names = read_text(text)
    assert_array_equal(X, [[1, 2], [3, 4]])
    assert (X.dtype, read_names) == (np.float64, names)


def test_a_left_out_row_index_is_logged(read_text, caplog):
    with caplog.at_level(logging.WARNING):
        read_text(",a,b\n0,1,2\n1,3,4\n")
    assert "the first column has no name and counts the rows" in caplog.text


def test_a_first_column_without_a_name_that_does_not_count_is_kept(read_text):
    X, names = read_text(",a\n5,1\n6,3\n")
    assert_array_equal(X, [[5, 1], [6, 3]])
    assert names == ["", "a"]


@pytest.mark.parametrize("gap", ["", " ", "NA", "n/a", "NULL", "nan", "NaN"])
@pytest.mark.parametrize("header", ["", "a,b\n"])
def test_gaps_become_nan(read_text, header, gap):
    assert_array_equal(read_text(f"{header}1,{gap}\n{gap},4\n")[0], [[1, np.nan], [np.nan, 4]])


def test_a_gap_in_the_first_line_does_not_make_it_names(read_text):
    X, names = read_text("NA,2\n3,4\n")
    assert_array_equal(X, [[np.nan, 2], [3, 4]])
    assert names is None


@pytest.mark.parametrize(("text", "shape"), [("1,2,3\n", (1, 3)), ("1\n2\n3\n", (3, 1)), ("a\n1\n", (1, 1))])
def test_single_rows_and_columns_stay_matrices(read_text, text, shape):
    assert read_text(text)[0].shape == shape


def test_numbers_are_read_to_the_last_digit(read_text):
    x = np.random.default_rng(0).standard_normal((4, 3)) * 1e-200
    assert_array_equal(read_text("\n".join(",".join(map(repr, map(float, row))) for row in x))[0], x)
    gaps = "\n".join(",".join(map(repr, map(float, row))) + "," for row in x)
    assert_array_equal(read_text(gaps)[0][:, :3], x)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n3,x\n", r"line 3, column 2 \(b\): 'x' is not a number"),
        ("1,2\n\n3,1.5.2\n", r"line 3, column 2: '1\.5\.2' is not a number"),
        ("1;2\n3;4,5\n", r"line 2, column 2: '4,5' is not a number"),
        ("1,2\n3,1_000\n", r"line 2, column 2: '1_000' is not a number"),
        ("1,2\n3\n", r"line 2: 1 cells where the first line has 2"),
        ("a,b\n1,2,3\n4,5,6\n", r"line 2: 3 cells where the first line has 2"),
        ("a,b\n", r"holds a line of names \(a, b\) but no rows"),
        (" \n\n", "holds no text but white space"),
    ],
)
def test_errors_name_the_line_and_the_column(read_text, text, message):
    with pytest.raises(ValueError, match=rf"table\.csv.*{message}"):
        read_text(text)


def test_text_in_an_unknown_encoding_is_refused_with_the_way_out(read_text):
    with pytest.raises(ValueError, match=r"is not a text table in UTF-8 .* pass encoding='latin-1'"):
        read_text("größe,b\n1,2\n", encoding="latin-1")


def test_the_mark_of_utf16_is_understood(read_text):
    X, names = read_text("größe,b\n1,2\n", encoding="utf-16")
    assert_array_equal(X, [[1, 2]])
    assert names == ["größe", "b"]


def test_white_space_separates_where_nothing_else_does(read_text):
    X, names = read_text("a   b\n1   2\n 3 4\n", name="table.csv")
    assert_array_equal(X, [[1, 2], [3, 4]])
    assert names == ["a", "b"]
