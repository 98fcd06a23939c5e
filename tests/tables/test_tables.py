"""Tables as people have them: what is fed in, what is carried along, what comes back, and what the messages say."""

import datetime
import re

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.io
from numpy.testing import assert_array_equal
from scipy import sparse

from frpcag.tables import read_matrix, read_table

MESSY = (
    "id;date;site;pressure;flow;flow;on\n"
    "101;2024-05-01;north;1,5;2;-999;true\n"
    "102;2024-05-02;south;?;3;7,25;false\n"
    "103;2024-05-03;north;4,25;NA;8;true\n"
)


@pytest.fixture
def write_text(tmp_path):
    def write(text, *, name="table.csv", encoding="utf-8"):
        (tmp_path / name).write_bytes(text.encode(encoding))
        return tmp_path / name

    return write


@pytest.fixture
def messy(write_text):
    return read_table(write_text(MESSY), missing="?,-999", decimal=",")


def test_numbers_are_fed_in_and_the_rest_is_carried(messy):
    assert_array_equal(messy.X, [[1.5, 2, np.nan], [np.nan, 3, 7.25], [4.25, np.nan, 8]])
    assert messy.names == ["pressure", "flow", "flow_2"]
    carried = {column.name: column.content for column in messy.carried}
    assert carried == {"id": "ids", "date": "dates", "site": "categories", "on": "truth values"}


def test_ids_name_the_rows_in_messages(messy):
    assert_array_equal(messy.ids, ["101", "102", "103"])
    assert messy.row_name(1) == "row 2 (id '102')"
    assert messy.column_name(2) == "column 'flow_2'"


def test_notices_say_what_was_renamed_and_what_was_carried(messy):
    renamed, carried = messy.notices
    assert renamed == "names that come more than once got a suffix: 'flow_2'."
    assert "'date' (dates, such as '2024-05-01')" in carried
    assert "'site' (categories, such as 'north')" in carried


def test_a_table_is_written_as_it_came(messy, tmp_path):
    messy.write(tmp_path / "out.csv", np.array([[1.5, 2, 6], [0.1, 3, 7.25], [4.25, 5, 8]]))
    assert (tmp_path / "out.csv").read_text() == (
        "id;date;site;pressure;flow;flow;on\n"
        "101;2024-05-01;north;1,5;2;6;true\n"
        "102;2024-05-02;south;0,1;3;7,25;false\n"
        "103;2024-05-03;north;4,25;5;8;true\n"
    )


def test_what_is_written_reads_back_to_the_last_bit(write_text, tmp_path):
    X = np.random.default_rng(0).standard_normal((30, 4)) * 10.0 ** np.arange(-8, 8, 4)
    X[2, 1] = np.nan
    table = read_table(write_text("a,b,c,d\n" + "\n".join(",".join(map(repr, row)) for row in X.tolist())))
    assert_array_equal(table.X, X)
    table.write(tmp_path / "again.csv")
    assert_array_equal(read_table(tmp_path / "again.csv").X, X)


def test_columns_of_a_parquet_file_keep_their_types(tmp_path):
    frame = pd.DataFrame(
        {
            "when": [datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 2)],
            "a": [1, 2],
            "who": pd.Categorical(["x", "y"]),
            "b": pd.array([1.5, None], dtype="Float64"),
        }
    )
    frame.to_parquet(tmp_path / "table.parquet")
    table = read_table(tmp_path / "table.parquet")
    assert_array_equal(table.X, [[1, 1.5], [2, np.nan]])
    assert table.names == ["a", "b"]
    table.write(tmp_path / "out.parquet", table.X * 2)
    again = pd.read_parquet(tmp_path / "out.parquet")
    assert list(again.columns) == list(frame.columns)
    assert again["a"].tolist() == [2, 4]
    pd.testing.assert_series_equal(again["when"], frame["when"])
    assert again["who"].tolist() == ["x", "y"]


WRITERS = {
    "npy": np.save,
    "npz": lambda path, X: np.savez(path, X=X),
    "mat": lambda path, X: scipy.io.savemat(path, {"X": X}),
    "h5": lambda path, X: h5py.File(path, "w").create_dataset("X", data=X).file.close(),
}


@pytest.mark.parametrize("suffix", WRITERS)
def test_matrices_come_back_in_their_format_and_dtype(suffix, tmp_path):
    X = np.array([[1, 2**53 + 1], [3, 4], [5, 6]])
    WRITERS[suffix](tmp_path / f"X.{suffix}", X)
    table = read_table(tmp_path / f"X.{suffix}")
    assert (table.names, table.column_name(1)) == (None, "column 2")
    table.write(tmp_path / f"out.{suffix}", table.X + [[0, 0], [0, 5], [0, 0]])
    again, _ = read_matrix(tmp_path / f"out.{suffix}")
    assert again.dtype == X.dtype
    assert_array_equal(again, X + [[0, 0], [0, 5], [0, 0]])
    table.write(tmp_path / f"out.{suffix}", table.X + 0.5)
    assert_array_equal(read_matrix(tmp_path / f"out.{suffix}")[0], table.X + 0.5)


@pytest.mark.parametrize("X", [np.eye(3, dtype=bool), np.array([[1, np.nan], [2, np.nan]])])
def test_all_columns_of_a_matrix_are_numbers(X, tmp_path):
    np.save(tmp_path / "X.npy", X)
    assert_array_equal(read_table(tmp_path / "X.npy").X, X)


def test_a_table_is_written_in_its_own_format_only(messy, tmp_path):
    with pytest.raises(ValueError, match=r"path='.*out\.npy' must end in \.csv, the format of the file that was read"):
        messy.write(tmp_path / "out.npy")


ODD = (
    '\ufeffid,zip,account,"a, first",b,b,note\r\n'
    "001,06083,9007199254740993,2.020e+01,+4.8,NA,x\r\n"
    "\r\n"
    '002,10115,9007199254740995,"18.0", 5.0 ,1.,"two\r\nlines, and ""more"""\r\n'
    "003,00501,9007199254740997,1E1,-.5,2.50,\r\n"
)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_only_the_cells_that_changed_are_rewritten(encoding, write_text, tmp_path):
    path = write_text(ODD, encoding=encoding)
    table = read_table(path)
    assert table.names == ["a, first", "b", "b_2"]
    assert list(table.ids) == ["001", "002", "003"]
    assert {column.name: column.content for column in table.carried}["account"] == "codes"
    table.write(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_bytes() == path.read_bytes()
    X = table.X.copy()
    X[1] = [19.5, 6, np.nan]
    table.write(tmp_path / "out.csv", X)
    expected = ODD.replace('"18.0", 5.0 ,1.,', '"19.5",6,,')
    assert (tmp_path / "out.csv").read_bytes() == expected.encode(encoding)


def test_white_space_between_cells_is_kept(write_text, tmp_path):
    table = read_table(write_text("a   b\n 1  2.0\n3\t4\n"))
    table.write(tmp_path / "out.csv", [[1, 2], [7, 4]])
    assert (tmp_path / "out.csv").read_text() == "a   b\n 1  2.0\n7\t4\n"


@pytest.mark.parametrize(
    ("cells", "content"),
    [
        (["06083", "10115", "00501"], "codes"),
        (["9007199254740993", "9007199254740995", "7"], "codes"),
        (["012", "5", "1300"], None),
        (["0.5", "00.7", "1e-07"], None),
        (["12345678901234567890", "3", "4"], None),
    ],
)
def test_codes_are_told_from_numbers(cells, content, write_text):
    table = read_table(write_text("a,b\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells))))
    assert (table.carried[0].content if table.carried else None) == content


PRICES = 'size;price\n50;"172,000"\n60;1,900,000.5\n70;990\n'


def test_marks_between_thousands_are_read_and_written_as_they_were(write_text, tmp_path):
    table = read_table(write_text(PRICES))
    assert_array_equal(table.X[:, 1], [172000, 1900000.5, 990])
    assert table.notices == ["'price' is read with ',' between the thousands."]
    table.write(tmp_path / "out.csv", [[50, 173000], [60, 1900000.5], [70, 1234]])
    assert (tmp_path / "out.csv").read_text() == PRICES.replace("172,000", "173,000").replace("990", "1,234")


def test_points_between_thousands_go_with_decimal_commas(write_text):
    assert_array_equal(read_table(write_text("a;b\n1.720,5;1\n12;2\n"), decimal=",").X, [[1720.5, 1], [12, 2]])


@pytest.mark.parametrize(
    ("text", "helps"),
    [
        ("a;b\n1,720;1\n?;2\n1,800;3\n", {"missing": "?"}),
        ("a;b\n1,72;1\n0,5;2\n", {"decimal": ","}),
        ("a;b\n1,72;1\n0,5;?\n3;4\n4;5\n", {"decimal": ",", "missing": "?"}),
        ("a;b\n1,72;1.5\n0,5;2.5\n", {}),
        ("a;b\n1;1\n2;x\n3;y\n4;z\n5;u\n6;v\n7;w\n" + "8;8\n" * 9, {}),
    ],
)
def test_advice_is_what_makes_the_file_readable(text, helps, write_text):
    path = write_text(text)
    with pytest.raises(ValueError, match="not all numbers") as error:
        read_table(path)
    given = dict(re.findall(r"(missing|decimal)='(.*?)'", str(error.value)))
    assert given == helps
    if helps:
        read_table(path, **helps)


def test_a_line_of_any_length_is_read(write_text):
    names = ",".join(f"gene {j} of many" for j in range(10_000))
    table = read_table(write_text(f"{names}\n" + "0.5," * 9_999 + "1\n" + ",".join(["2"] * 10_000) + "\n"), drop="1")
    assert table.X.shape == (2, 9_999)


def test_a_quotation_mark_that_stays_open_is_named(write_text):
    text = 'a,b\n1,"2\n' + "3,4\n" * 40_000
    with pytest.raises(ValueError, match="look for a quotation mark that is not closed"):
        read_table(write_text(text))


@pytest.fixture
def parquet(tmp_path):
    days = pd.date_range("2024-01-01", periods=4, name="day")
    frame = pd.DataFrame(
        {
            "count": pd.array([1, 2, 3, None], dtype="Int16"),
            "level": np.array([0.5, 1.5, 2.5, 3.5], np.float32),
            "account": np.array([0, 2, 4, 6]) + 2**53 + 1,
            "on": [True, False, True, True],
            "site": pd.Categorical(["n", "s", "n", "s"]),
            "parts": [[1.0], [], None, [2.0, 3.0]],
        },
        index=days,
    )
    frame.to_parquet(tmp_path / "table.parquet")
    return tmp_path / "table.parquet", pd.read_parquet(tmp_path / "table.parquet")


def test_a_parquet_file_keeps_its_index_and_its_types(parquet, tmp_path):
    path, frame = parquet
    table = read_table(path)
    assert table.names == ["count", "level"]
    assert table.ids[1] == "2024-01-02 00:00:00"
    assert {column.name: column.content for column in table.carried} == {
        "account": "codes",
        "on": "truth values",
        "site": "categories",
        "parts": "list<element: double>",
        "day": "ids",
    }
    X = table.X.copy()
    X[0] = [7, 9.5]
    table.write(tmp_path / "out.parquet", X)
    frame.loc[frame.index[0], ["count", "level"]] = [7, 9.5]
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "out.parquet"), frame)


def test_a_number_that_its_parquet_type_does_not_hold_widens_the_column(parquet, tmp_path):
    path, _ = parquet
    table = read_table(path)
    X = table.X.copy()
    X[1, 0] = 2.5
    table.write(tmp_path / "out.parquet", X)
    again = pd.read_parquet(tmp_path / "out.parquet")
    assert again["count"].dropna().tolist() == [1, 2.5, 3]
    assert again["level"].dtype == np.float32


def test_a_parquet_column_of_lists_is_named_where_it_is_asked_for(parquet):
    with pytest.raises(ValueError, match=r"'parts' holds '\[1\.0\]' \(list<element: double>\)"):
        read_table(parquet[0], columns="parts")


def test_an_h5ad_file_keeps_its_annotation_and_its_sparse_counts(tmp_path):
    anndata = pytest.importorskip("anndata")
    counts = np.array([[1, 0, 2], [0, 3, 0]], np.float32)
    obs = pd.DataFrame({"site": ["n", "s"]}, index=["c1", "c2"])
    given = anndata.AnnData(sparse.csr_matrix(counts), obs, layers={"raw": counts})
    given.write_h5ad(tmp_path / "in.h5ad")
    table = read_table(tmp_path / "in.h5ad")
    assert list(table.ids) == ["c1", "c2"]
    table.write(tmp_path / "out.h5ad", table.X + np.float32([[0, 5, 0], [0, 0, 0]]))
    again = anndata.read_h5ad(tmp_path / "out.h5ad")
    assert sparse.issparse(again.X)
    assert_array_equal(again.X.toarray(), [[1, 5, 2], [0, 3, 0]])
    assert_array_equal(again.layers["raw"], counts)
    assert list(again.obs["site"]) == ["n", "s"]


def test_chosen_columns_are_fed_in_and_the_others_come_back(write_text, tmp_path):
    table = read_table(write_text("a,b,c\n1,2,3\n4,5,6\n"), columns="c,1")
    assert table.names == ["a", "c"]
    table.write(tmp_path / "out.csv", [[7, 8], [9, 10]])
    assert (tmp_path / "out.csv").read_text() == "a,b,c\n7,2,8\n9,5,10\n"


def test_dropped_columns_do_not_come_back(write_text, tmp_path):
    table = read_table(write_text('a,"b, too",c\n1,2,3\n4,5,6\n'), drop='"b, too"')
    table.write(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "a,c\n1,3\n4,6\n"


def test_the_id_column_is_the_one_that_is_named(write_text):
    table = read_table(write_text("a,patient,c\n1,20,3\n4,30,6\n"), id="patient")
    assert table.names == ["a", "c"]
    assert_array_equal(table.ids, ["20", "30"])


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("name,a\nx,1\ny,2\n", ["x", "y"]),
        (",a\n0,1\n1,2\n", ["0", "1"]),
        ("sample_id,a\n7,1\n5,2\n", ["7", "5"]),
        ("sample_id,a\n7,1\n7,2\n", None),
        ("a,b\n1,3\n2,4\n", None),
    ],
)
def test_ids_are_found_by_name_and_by_their_values(write_text, text, ids):
    table = read_table(write_text(text))
    assert (None if table.ids is None else list(table.ids)) == ids


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("P1,3,4\nP2,5,6\n", None),
        ("id,2019,2020\nA,3,4\nB,5,6\n", ["2019", "2020"]),
        ("who,3a,b\nA,3,4\nB,5,6\n", ["3a", "b"]),
    ],
)
def test_a_first_line_of_data_is_not_taken_for_names(write_text, text, names):
    table = read_table(write_text(text))
    assert table.names == names
    assert_array_equal(table.X[:2], [[3, 4], [5, 6]])


def test_all_unusable_columns_are_in_one_message_with_the_option_that_helps(write_text):
    text = "a;b;c\n1;1,5;3\nhigh;2,5;?\n4;0,5;6\n4;;-\n4;;8\n4;;8\n"
    with pytest.raises(ValueError) as error:
        read_table(write_text(text))
    message = str(error.value)
    assert "'a' holds 'high', line 3: pass missing='high'" in message
    assert "'b' holds '1,5', line 2: pass decimal=','" in message
    assert "'c' holds '?', line 3: pass missing='?,-'" in message
    assert "drop='a,b,c'" in message


def test_sentinels_are_missing_in_any_spelling_and_any_format(write_text, tmp_path):
    assert_array_equal(read_table(write_text("a,b\n-999,1\n2,-999.0\n"), missing=[-999]).X, [[np.nan, 1], [2, np.nan]])
    np.save(tmp_path / "X.npy", np.array([[1, -999], [3, 4]]))
    assert_array_equal(read_table(tmp_path / "X.npy", missing="-999").X, [[1, np.nan], [3, 4]])


def test_text_in_latin1_and_with_bars_is_read_as_told(write_text, tmp_path):
    table = read_table(write_text("größe|b\n1|2\n", encoding="latin-1"), encoding="latin-1")
    assert table.names == ["größe", "b"]
    table.write(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_bytes() == "größe|b\n1|2\n".encode("latin-1")


def test_a_delimiter_at_the_end_of_each_line_is_no_column(write_text):
    table = read_table(write_text("a,b,\n1,2,\n3,4,\n"))
    assert table.names == ["a", "b"]
    assert table.carried == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": "presure"}, r"columns='presure' is not a column of .*pass one of 'pressure'"),
        ({"drop": ["9"]}, r"drop='9' is not a column of .*a number from 1 to 2"),
        ({"columns": "site"}, r"'site' holds 'n', line 2 \(text\)|'site' holds 'n', line 2"),
        ({"drop": "pressure"}, r"has no column of numbers to use: 'site'"),
        ({"decimal": "x"}, r"decimal='x' must be '\.' or ','"),
        ({"delimiter": "::"}, r"delimiter='::' must be one character"),
        ({"encoding": "utf-99"}, r"encoding='utf-99' is not known"),
        ({"key": "X"}, r"key='X' does not apply"),
    ],
)
def test_wrong_arguments_are_refused_by_name(write_text, options, message):
    path = write_text("site,pressure\nn,1\ns,2\n")
    with pytest.raises(ValueError, match=message):
        read_table(path, **options)


def test_a_key_of_a_parquet_file_is_refused(tmp_path):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pd.DataFrame({"a": [1.0, 2.0]}).to_parquet(tmp_path / "X.parquet")
    with pytest.raises(ValueError, match=r"key='X' does not apply to .*X\.parquet"):
        read_table(tmp_path / "X.parquet", key="X")


def test_a_matrix_of_another_shape_is_not_written(messy, tmp_path):
    with pytest.raises(ValueError, match=r"X has shape \(2, 3\) but the table has \(3, 3\)"):
        messy.write(tmp_path / "out.csv", np.ones((2, 3)))
    assert not (tmp_path / "out.csv").exists()
