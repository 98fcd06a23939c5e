"""Every bad input is one line on stderr and exit code 2, and leaves no folder behind."""

import os
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest

from frpcag.cli.errors import in_option_words

BAD_FILES = {
    "missing": lambda path, X: path,
    "folder": lambda path, X: path.mkdir(),
    "empty": lambda path, X: path.write_bytes(b""),
    "truncated": lambda path, X: (np.save(path, X), path.write_bytes(path.read_bytes()[:-50])),
    "text": lambda path, X: path.write_text("no matrix"),
    "pickle": lambda path, X: path.write_bytes(pickle.dumps(X)),
    "objects": lambda path, X: np.save(path, X.astype(object), allow_pickle=True),
    "an empty row": lambda path, X: np.save(path, np.where(np.arange(len(X))[:, None] == 3, np.nan, X)),
    "an empty column": lambda path, X: np.save(path, np.where(np.arange(X.shape[1]) == 3, np.nan, X)),
    "infinity": lambda path, X: np.save(path, np.where(X.max() == X, np.inf, X)),
    "complex": lambda path, X: np.save(path, X * 1j),
    "vector": lambda path, X: np.save(path, X.ravel()),
    "one row": lambda path, X: np.save(path, X[:1]),
}

BAD_WORDS = {
    "--clusters": ("0", "1000", "x"),
    "--n-components": ("0", "1.5", "1000", "x"),
    "--feature-shape": ("5x5", "x", "4x", "0x24"),
    "--jobs": ("0", "x"),
    "--seed": ("-1", "x"),
    "--key": ("X",),
    "--output": ("data.npy", "data.npy/run", "/proc/nowhere/run"),
    "--set": ("gamma1", "=3", "gama1=3", "estimator=3", "callback=3", "estimator__gamma1=3"),
    "--no-such-option": ("",),
}
BAD_SETTINGS = {
    "tol": ("abc", "-1", "nan", "inf"),
    "max_iter": ("0", "1.5", "abc"),
    "n_neighbors": ("0", "x"),
    "gamma1": ("-1", "x", "inf", "nan"),
    "gamma2": ("-1",),
    "feature_graph": ("circle", "grid"),
    "sample_graph": ("grid",),
    "laplacian": ("random",),
    "loss": ("l7",),
    "center": ("x",),
    "backend": ("abacus",),
}


def assert_one_line(result, *words):
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert result.stderr.endswith(".\n")
    for word in words:
        assert word in result.stderr


@pytest.mark.parametrize("kind", BAD_FILES)
def test_a_bad_file_is_refused_by_name(kind, working_folder, X, frpcag):
    BAD_FILES[kind](working_folder / "bad.npy", X)
    before = os.listdir(working_folder)
    assert_one_line(frpcag("fit", "bad.npy"), "bad.npy")
    assert os.listdir(working_folder) == before


def test_an_unknown_format_is_refused_by_name(working_folder, frpcag):
    (working_folder / "table.xyz").write_text("1,2\n")
    assert_one_line(frpcag("fit", "table.xyz"), "table.xyz", ".npy")


@pytest.mark.parametrize(("words", "names"), [((), ("a, b",)), (("--key", "c"), ("--key='c'", "a, b"))])
def test_a_file_of_several_arrays_asks_for_one_of_its_keys(words, names, working_folder, X, frpcag):
    np.savez(working_folder / "both.npz", a=X, b=X)
    assert_one_line(frpcag("fit", "both.npz", *words), "both.npz", "--key", *names)
    assert os.listdir(working_folder) == ["both.npz"]


@pytest.mark.parametrize(("option", "value"), [(o, v) for o, values in BAD_WORDS.items() for v in values])
def test_a_bad_option_is_refused_by_name_with_its_value(option, value, data, frpcag, working_folder):
    assert_one_line(frpcag("fit", "data.npy", option, value), option, value)
    assert os.listdir(working_folder) == ["data.npy"]


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in BAD_SETTINGS.items() for v in values])
def test_a_bad_parameter_is_refused_by_name_with_its_value(name, value, data, frpcag, working_folder):
    assert_one_line(frpcag("fit", "data.npy", "--set", f"{name}={value}"), name, value)
    assert os.listdir(working_folder) == ["data.npy"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fitt", "data.npy"), "did you mean fit?"),
        (("fit", "data.npy", "--sed", "3"), "did you mean --seed"),
        (("fit", "data.npy", "--set", "gama1=3"), "did you mean gamma1="),
        (("fit", "data.npy", "--loss", "l2"), "--set NAME=VALUE"),
        (("fit", "data.npy", "more"), "unexpected argument 'more'"),
    ],
)
def test_a_word_that_is_not_known_says_the_way_out(words, said, data, frpcag):
    assert_one_line(frpcag(*words), said)


def test_values_beyond_float32_are_refused(working_folder, X, frpcag):
    np.save(working_folder / "huge.npy", X * 1e300)
    assert_one_line(frpcag("fit", "huge.npy", "--float32"), "huge.npy", "float32")


def test_the_first_entry_that_is_not_finite_is_named(working_folder, X, frpcag):
    X[4, 6] = np.inf
    np.save(working_folder / "bad.npy", X)
    assert_one_line(frpcag("fit", "bad.npy"), "row 5, column 7", "infinite")


def test_an_existing_run_is_refused_before_the_work(data, frpcag, monkeypatch):
    frpcag("fit", data, "--no-plots")
    monkeypatch.setattr("frpcag.cli.fit.read_input", lambda *_, **__: pytest.fail("work was done"))
    assert_one_line(frpcag("fit", data), "--output=frpcag-run-data", "--overwrite")


def test_a_folder_that_is_no_run_is_never_replaced(data, frpcag, working_folder):
    (working_folder / "precious").mkdir()
    (working_folder / "precious/work.txt").write_text("of years")
    assert_one_line(frpcag("fit", data, "--output", "precious", "--overwrite"), "--output=precious")
    assert (working_folder / "precious/work.txt").read_text() == "of years"


@pytest.mark.parametrize("words", [("nonsense",), ("fit",), ("--nonsense",)])
def test_bad_usage_is_one_line(words, frpcag):
    assert_one_line(frpcag(*words), "--help")


def test_an_unexpected_error_is_one_line_and_exit_code_1(data, frpcag, monkeypatch):
    monkeypatch.setattr("frpcag.cli.fit.record_of", lambda *_: 1 / 0)
    result = frpcag("fit", data)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: unexpected ZeroDivisionError")
    assert result.stderr.count("\n") == 1


def test_arguments_are_named_as_options_of_the_command_but_paths_stay():
    message = "n_clusters=9 exceeds it; drop key, random_state.\nkey/tol.npy key.npy my-key"
    told = in_option_words(message, {"--clusters", "--key"})
    assert told == "--clusters=9 exceeds it; drop --key, random_state. key/tol.npy key.npy my-key"


def test_a_real_process_shows_no_traceback(working_folder):
    command = [sys.executable, "-m", "frpcag.cli.main", "fit", "nowhere.npy"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert result.stderr.splitlines()[-1].startswith("error: there is no file nowhere.npy")
    assert os.listdir(working_folder) == []


@pytest.mark.parametrize("words", [["fit", "nowhere.npy", "--debug"], ["--debug", "fit", "nowhere.npy"]])
def test_debug_shows_a_traceback_wherever_it_stands(words, working_folder, frpcag):
    result = frpcag(*words)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Traceback" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("error: there is no file nowhere.npy")
    assert os.listdir(working_folder) == []


def test_names_from_a_file_do_not_steer_the_terminal(frpcag, working_folder):
    names = "day,\x1b]0;title\x07a,\x1b[31mb,\u202ec"
    rows = "\n".join(f"{i},{i % 7},{1000 if i == 5 else i % 7},x\x1b[2J{i}" for i in range(40))
    (working_folder / "names.csv").write_text(f"{names}\n", encoding="utf-8")
    (working_folder / "rows.csv").write_text(f"{names}\n{rows}\n", encoding="utf-8")
    refused = frpcag("fit", working_folder / "names.csv")
    cleaned = frpcag("clean", working_folder / "rows.csv", "--output", "run")
    assert (refused.exit_code, cleaned.exit_code) == (2, 0), cleaned.stderr
    assert r"\x1b]0;title\x07a, \x1b[31mb, \u202ec" in refused.stderr
    assert r"\x1b[31mb" in cleaned.stdout
    for told in (refused.stderr, cleaned.stderr, cleaned.stdout):
        assert not set(told) & {"\x1b", "\x07", "\u202e"}


def test_messages_of_clean_name_no_option_that_it_lacks(working_folder, frpcag):
    np.savetxt("t.csv", np.random.default_rng(0).normal(size=(3, 3)), delimiter=",")
    said = frpcag("clean", "t.csv", "--no-plots").stderr
    assert "n_neighbors=10 is not smaller than n_samples=3" in said
    assert set(re.findall(r"--[a-z-]+", said)) == set()


def run_in_process(*words, **options):
    return subprocess.run(
        [sys.executable, "-m", "frpcag.cli.main", *words], stderr=subprocess.PIPE, text=True, **options
    )


def test_names_print_where_standard_output_takes_ascii_alone(working_folder, X):
    np.save("größe.npy", X)
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = run_in_process("fit", "größe.npy", "--no-plots", env=env, stdout=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (0, "")
    assert r"gr\xf6\xdfe.npy" in done.stdout


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
@pytest.mark.parametrize("words", [("info",), ("--version",), ("info", "--json")])
def test_a_full_standard_output_is_one_line(words):
    with open("/dev/full", "w") as full:
        done = run_in_process(*words, stdout=full)
    assert done.returncode == 1
    assert done.stderr.startswith("error: standard output cannot be written (No space left on device)")
    assert done.stderr.count("\n") == 1
