"""frpcag video: clips in, run folders out."""

import csv
import json

import numpy as np
import pytest

from frpcag import BackgroundSeparator
from frpcag.cli.video_outputs import video_page
from frpcag.video.encode import video_writer, write_image
from frpcag.video.frames import read_frames, sample_frames

pytest.importorskip("av")

FILES = [
    *("background.mp4", "background.png", "boxes.csv", "boxes.json", "foreground.mp4", "mask.mp4"),
    *("report.html", "run.json", "separator.npz", "side_by_side.mp4"),
]


def entries(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def frames():
    rng = np.random.default_rng(0)
    frames = np.clip(rng.normal(100, 3, (40, 32, 48)), 0, 255).astype(np.uint8)
    for frame in frames:
        top, left = rng.integers(0, 20), rng.integers(0, 36)
        frame[top : top + 12, left : left + 12] = 220
    return frames


@pytest.fixture
def stack(working_folder, frames):
    """The frames as an array in a file: no coding losses."""
    np.save(working_folder / "walk.npy", frames)
    return working_folder / "walk.npy"


@pytest.fixture
def clip(working_folder, frames):
    with video_writer(working_folder / "walk.mp4", fps=12) as write:
        for frame in frames:
            write(frame)
    return working_folder / "walk.mp4"


def test_a_video_file_becomes_a_run_folder(clip, frpcag, working_folder):
    result = frpcag("video", clip)
    assert result.exit_code == 0, result.stderr
    run = working_folder / "frpcag-run-walk"
    assert entries(run) == FILES
    for name in ("background", "foreground", "mask"):
        assert read_frames(run / f"{name}.mp4").shape == (40, 32, 48)
    record = json.loads((run / "run.json").read_text())
    assert record["data"]["n_frames"] == record["fitted_frames"] == 40
    assert record["data"]["fps"] == pytest.approx(12)
    assert 0.05 < record["foreground"]["share"] < 0.2
    assert "walk.mp4: 40 frames of 48 x 32, grey" in result.stdout


def test_mask_and_foreground_videos_show_what_the_separator_found(stack, frames, frpcag, working_folder):
    assert frpcag("video", stack, "--quiet").exit_code == 0
    run = working_folder / "frpcag-run-walk"
    model = BackgroundSeparator().fit(frames)
    mask = read_frames(run / "mask.mp4") > 127
    assert (mask == model.mask_).mean() > 0.99  # edges suffer from the coding
    assert np.abs(read_frames(run / "background.mp4") - model.background_).mean() < 3
    foreground = read_frames(run / "foreground.mp4")
    assert foreground[~model.mask_].mean() < 5
    assert foreground[model.mask_].mean() > 150


def test_json_is_the_run_json_and_nothing_else(stack, frpcag, working_folder):
    result = frpcag("video", stack, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == json.loads((working_folder / "frpcag-run-walk/run.json").read_text())
    assert result.stderr == ""


def test_a_long_clip_is_learned_from_a_few_of_its_frames(stack, frames, frpcag, working_folder):
    assert frpcag("video", stack, "--fit-frames", 15, "--quiet").exit_code == 0
    run = working_folder / "frpcag-run-walk"
    sample, numbers, _ = sample_frames(frames, 15)
    assert json.loads((run / "run.json").read_text())["fitted_frames"] == len(numbers) <= 15
    model = BackgroundSeparator().fit(sample)
    expected = model.transform(frames)
    expected[numbers] = model.mask_
    assert ((read_frames(run / "mask.mp4") > 127) == expected).mean() > 0.99


def test_boxes_and_masks_are_those_of_the_separator(stack, frames, frpcag, working_folder):
    assert frpcag("video", stack, "--quiet", "--masks").exit_code == 0
    run = working_folder / "frpcag-run-walk"
    expected = BackgroundSeparator().fit(frames).mask_
    np.testing.assert_array_equal(read_frames(run / "masks") > 0, expected)
    rows = json.loads((run / "boxes.json").read_text())
    with (run / "boxes.csv").open(newline="") as file:
        assert [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)] == rows
    for row in rows[:20]:
        inside = expected[row["frame"], row["y"] : row["y"] + row["h"], row["x"] : row["x"] + row["w"]]
        assert inside.any(axis=1).all()
        assert inside.any(axis=0).all()
        assert row["seconds"] == pytest.approx(row["frame"] / 25)


def test_the_clip_stands_beside_its_background_and_mask(stack, frames, frpcag, working_folder):
    assert frpcag("video", stack, "--quiet").exit_code == 0
    wide = read_frames(working_folder / "frpcag-run-walk/side_by_side.mp4")
    assert wide.shape == (40, 32, 3 * 48)
    assert np.abs(wide[:, :, :48].astype(float) - frames).mean() < 4  # lossy coding


def test_a_saved_background_is_no_larger_than_the_clip(stack, frames, frpcag, working_folder):
    assert frpcag("video", stack, "--quiet").exit_code == 0
    assert (working_folder / "frpcag-run-walk/separator.npz").stat().st_size < frames.nbytes


def test_one_frame_is_enough_for_a_frozen_background(stack, frames, frpcag, working_folder):
    assert frpcag("video", stack, "--output", "first", "--quiet").exit_code == 0
    np.save(working_folder / "one.npy", frames[:1])
    result = frpcag("video", "one.npy", "--model", "first/separator.npz", "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["data"]["n_frames"] == 1


def test_a_threshold_counts_for_a_frozen_background_too(stack, frpcag):
    assert frpcag("video", stack, "--output", "first", "--quiet").exit_code == 0
    result = frpcag("video", stack, "--model", "first/separator.npz", "--threshold", 1e9, "--json")
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    assert (record["threshold"], record["foreground"]["largest"]) == (1e9, 0.0)


def test_little_memory_means_fewer_frames(stack, frpcag, working_folder):
    gigabytes = 56 * 32 * 48 * 20.5 / 2**30
    assert frpcag("video", stack, "--max-memory", max(gigabytes, 0.01), "--resize", "128x192", "--quiet").exit_code == 0
    assert json.loads((working_folder / "frpcag-run-walk/run.json").read_text())["fitted_frames"] < 10


def test_a_frozen_background_serves_another_clip(stack, frames, frpcag, working_folder):
    assert frpcag("video", stack, "--max-frames", 20, "--output", "first", "--quiet").exit_code == 0
    words = ("--model", "first/separator.npz", "--output", "second", "--json")
    result = frpcag("video", stack, *words)
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["fitted_frames"] is None
    expected = BackgroundSeparator().fit(frames[:20]).transform(frames)
    assert ((read_frames(working_folder / "second/mask.mp4") > 127) == expected).mean() > 0.99


def test_colour_folders_are_separated_in_colour(working_folder, frames, frpcag):
    (working_folder / "shots").mkdir()
    for number, frame in enumerate(frames[:12]):
        write_image(working_folder / "shots" / f"{number}.png", np.stack([frame, frame, 255 - frame], axis=2))
    result = frpcag("video", "shots", "--color", "--every", 2, "--resize", "0.5", "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["data"]["frame_shape"] == [16, 24, 3]
    assert read_frames(working_folder / "frpcag-run-shots/background.mp4", color=True).shape == (6, 16, 24, 3)


def write_one_frame(folder):
    np.save(folder / "bad.npy", np.zeros((1, 8, 8), np.uint8))


def write_no_frame(folder):
    np.save(folder / "bad.npy", np.zeros((0, 8, 8), np.uint8))


def write_words(folder):
    (folder / "bad.npy").write_text("words")


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (write_one_frame, "holds one frame"),
        (write_no_frame, "holds no frame"),
        (write_words, "cannot be read as an array"),
        (lambda folder: None, "there is no file or folder bad.npy"),
    ],
)
def test_bad_clips_are_one_line_and_leave_nothing(write, words, frpcag, working_folder):
    write(working_folder)
    before = entries(working_folder)
    result = frpcag("video", "bad.npy")
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert entries(working_folder) == before


def test_a_clip_cut_off_is_one_line_and_leaves_nothing(clip, frpcag, working_folder):
    clip.write_bytes(clip.read_bytes()[:3000])
    result = frpcag("video", clip)
    assert result.exit_code == 2
    assert "cannot be read as video" in result.stderr
    assert entries(working_folder) == ["walk.mp4"]


@pytest.mark.parametrize("resize", ["0", "axb", "10x", "-1x5"])
def test_a_bad_size_is_named(resize, stack, frpcag):
    result = frpcag("video", stack, f"--resize={resize}")
    assert result.exit_code == 2
    assert "must be WIDTHxHEIGHT" in result.stderr


def test_a_clip_too_large_for_the_memory_says_what_to_do(working_folder, frpcag):
    np.save(working_folder / "large.npy", np.zeros((3, 500, 500), np.uint8))
    result = frpcag("video", "large.npy", "--max-memory", "0.01")
    assert result.exit_code == 2
    assert "--max-memory=0.01" in result.stderr
    assert "--resize" in result.stderr


def test_an_existing_output_is_refused_before_any_work(stack, frpcag, working_folder, monkeypatch):
    (working_folder / "frpcag-run-walk").mkdir()
    monkeypatch.setattr("frpcag.cli.video.FrameSource", lambda *_, **__: pytest.fail("work was done"))
    result = frpcag("video", stack)
    assert result.exit_code == 2
    assert "exists" in result.stderr


def test_a_failure_while_writing_leaves_nothing(stack, frpcag, working_folder, monkeypatch):
    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("frpcag.cli.video_outputs.write_image", full_disk)
    result = frpcag("video", stack)
    assert result.exit_code == 2
    assert "cannot be written (No space left on device)" in result.stderr
    assert entries(working_folder) == ["walk.npy"]


def test_a_clip_of_another_size_than_the_model_says_how_to_resize_it(stack, frpcag, working_folder):
    assert frpcag("video", stack).exit_code == 0
    np.save(working_folder / "large.npy", np.zeros((3, 40, 50), np.uint8))
    before = entries(working_folder)
    result = frpcag("video", "large.npy", "--model", "frpcag-run-walk/separator.npz")
    assert result.exit_code == 2
    assert (
        "large.npy has frames of 50 x 40 in grey but separator.npz was learned from frames of 48 x 32" in result.stderr
    )
    assert "--resize 48x32" in result.stderr
    assert entries(working_folder) == before
    assert frpcag("video", "large.npy", "--model", "frpcag-run-walk/separator.npz", "--resize", "48x32").exit_code == 0


def test_ctrl_c_leaves_nothing(stack, frpcag, working_folder, monkeypatch, ctrl_c):
    monkeypatch.setattr("frpcag.cli.progress.Bar.__call__", lambda self, at: ctrl_c() if at.n_iter == 3 else None)
    result = frpcag("video", stack)
    assert result.exit_code == 130
    assert "nothing was written" in result.stderr
    assert entries(working_folder) == ["walk.npy"]


def test_parameters_of_learning_are_refused_where_nothing_is_learned(stack, frpcag):
    result = frpcag("video", stack, "--model", "separator.npz", "--set", "gamma1=3")
    assert result.exit_code == 2
    assert "--set gamma1 is for learning" in result.stderr


def test_a_parameter_of_the_separator_is_set(stack, frames, frpcag, working_folder):
    assert frpcag("video", stack, "--set", "tol=0.5", "--quiet").exit_code == 0
    record = json.loads((working_folder / "frpcag-run-walk/run.json").read_text())
    assert record["parameters"]["tol"] == record["certificate"]["tol"] == 0.5
    assert record["certificate"]["relative_gap"] == BackgroundSeparator(tol=0.5).fit(frames).duality_gap_


def test_a_foreign_model_is_refused(stack, frpcag, working_folder):
    np.savez(working_folder / "other.npz", X=np.zeros(3))
    result = frpcag("video", stack, "--model", "other.npz")
    assert result.exit_code == 2
    assert "is not a saved frpcag model" in result.stderr


def test_a_stream_is_refused_with_the_way_out(frpcag):
    result = frpcag("video", "rtsp://camera.local/stream")
    assert result.exit_code == 2
    assert "SOURCE=rtsp://camera.local/stream is a stream" in result.stderr
    assert "record a part of it" in result.stderr


def test_the_page_shows_frames_with_their_masks_and_shares(stack, frames, frpcag, working_folder, monkeypatch):
    shown = []
    monkeypatch.setattr(
        "frpcag.cli.video.video_page", lambda *told, **more: shown.append(video_page(*told, **more)) or shown[0]
    )
    assert frpcag("video", stack, "--max-frames", 12).exit_code == 0
    fit, mask = shown[0], shown[0].pictures.stacks["mask"]
    assert list(fit.pictures.stacks) == ["frame", "background", "foreground", "mask"]
    assert list(fit.numbers) == list(range(12))
    np.testing.assert_array_equal(fit.pictures.stacks["frame"], frames[:12])
    assert (mask == (frames[:12] == 220)).mean() > 0.95
    assert fit.shares.samples[6] == pytest.approx(mask[6].mean())
    page = (working_folder / "frpcag-run-walk/report.html").read_text(encoding="utf-8")
    assert "12 frames of 48 x 32, grey" in page
    assert 'href="mask.mp4" download' in page
