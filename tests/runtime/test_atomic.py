"""Files and run folders appear whole or not at all, and never at the cost of anything else."""

from pathlib import Path

import pytest

from frpcag.data import atomic_folder
from frpcag.runtime.atomic import atomic_file


def write_run(path, *, content="new", **options):
    with atomic_folder(path, **options) as folder:
        (folder / "run.json").write_text(content)


def listing(folder):
    return sorted(item.name for item in folder.iterdir())


def contents(folder):
    return {item: item.read_text() for item in folder.rglob("*") if item.is_file()}


def test_folder_appears_when_the_block_ends(tmp_path):
    path = tmp_path / "run"
    with atomic_folder(path) as folder:
        assert folder.parent == tmp_path
        (folder / "run.json").write_text("{}")
        assert not path.exists()
    assert listing(tmp_path) == ["run"]
    assert listing(path) == ["run.json"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_folder_vanishes_on_any_exception(tmp_path, error):
    def fail():
        with atomic_folder(tmp_path / "run") as folder:
            (folder / "part").mkdir()
            raise error

    with pytest.raises(error):
        fail()
    assert listing(tmp_path) == []


def test_missing_parents_are_made_and_removed_again_on_failure(tmp_path):
    def fail():
        with atomic_folder(tmp_path / "a" / "b" / "run"):
            raise ValueError

    with pytest.raises(ValueError):
        fail()
    assert listing(tmp_path) == []
    write_run(tmp_path / "a" / "b" / "run")
    assert (tmp_path / "a" / "b" / "run" / "run.json").is_file()


def test_folder_has_the_usual_permissions(tmp_path):
    (tmp_path / "usual").mkdir()
    write_run(tmp_path / "run")
    assert (tmp_path / "run").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_existing_run_is_refused_before_anything_is_written(tmp_path):
    write_run(tmp_path / "run", content="old")
    with pytest.raises(FileExistsError, match=r"path=.*run exists; .* overwrite=True"):
        write_run(tmp_path / "run")
    assert (tmp_path / "run" / "run.json").read_text() == "old"


def test_overwrite_replaces_a_run_whole(tmp_path):
    write_run(tmp_path / "run", content="old")
    (tmp_path / "run" / "extra").write_text("old")
    write_run(tmp_path / "run", overwrite=True)
    assert listing(tmp_path) == ["run"]
    assert listing(tmp_path / "run") == ["run.json"]
    assert (tmp_path / "run" / "run.json").read_text() == "new"


def test_overwrite_that_fails_leaves_the_old_run(tmp_path):
    write_run(tmp_path / "run", content="old")

    def fail():
        with atomic_folder(tmp_path / "run", overwrite=True):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert listing(tmp_path) == ["run"]
    assert (tmp_path / "run" / "run.json").read_text() == "old"


def test_failed_rename_puts_the_old_run_back(tmp_path, monkeypatch):
    write_run(tmp_path / "run", content="old")
    rename = Path.rename

    def broken(self, target):
        if ".partial-" in self.name and "old" not in self.name:
            raise OSError("disk gone")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", broken)
    with pytest.raises(OSError, match="disk gone"):
        write_run(tmp_path / "run", overwrite=True)
    assert listing(tmp_path) == ["run"]
    assert (tmp_path / "run" / "run.json").read_text() == "old"


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_overwrite_never_deletes_what_is_not_a_run(tmp_path, kind):
    path, elsewhere = tmp_path / "mine", tmp_path / "elsewhere"
    if kind == "folder":
        path.mkdir()
        (path / "thesis.tex").write_text("years of work")
    elif kind == "file":
        path.write_text("years of work")
    else:
        write_run(elsewhere)
        path.symlink_to(elsewhere)
    before = listing(tmp_path), contents(tmp_path)
    with pytest.raises(FileExistsError, match=r"is not a run folder .* delete it yourself"):
        write_run(path, overwrite=True)
    assert (listing(tmp_path), contents(tmp_path)) == before


def test_folder_that_appears_meanwhile_is_kept(tmp_path):
    path = tmp_path / "run"

    def race():
        with atomic_folder(path):
            path.mkdir()
            (path / "theirs").write_text("x")

    with pytest.raises(FileExistsError):
        race()
    assert listing(tmp_path) == ["run"]
    assert listing(path) == ["theirs"]


def test_a_file_is_replaced_whole(tmp_path):
    file = tmp_path / "page.md"
    file.write_text("old")
    with atomic_file(file) as partial:
        partial.write_text("new")
        assert file.read_text() == "old"
        assert partial.suffix == ".md"
    assert file.read_text() == "new"
    assert listing(tmp_path) == ["page.md"]


def write_half(file, error):
    with atomic_file(file) as partial:
        partial.write_text("half")
        raise error


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_file_cut_short_leaves_the_old_one(tmp_path, error):
    file = tmp_path / "page.md"
    file.write_text("old")
    with pytest.raises(error):
        write_half(file, error)
    assert file.read_text() == "old"
    assert listing(tmp_path) == ["page.md"]
