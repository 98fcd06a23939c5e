"""Frames in and out: real encoding and decoding of small clips."""

import numpy as np
import pytest
from PIL import Image

from frpcag.video.encode import video_writer, write_image
from frpcag.video.frames import FrameSource, read_frames, sample_frames

av = pytest.importorskip("av")


def smooth_clip(n=12, h=48, w=64, *, color=False):
    """Smooth pictures survive lossy coding."""
    t, y, x = np.meshgrid(np.arange(n), np.arange(h), np.arange(w), indexing="ij")
    grey = 128 + 60 * np.sin(x / 12 + t / 3) + 40 * np.cos(y / 9)
    if not color:
        return grey.astype(np.uint8)
    return np.stack([grey, 255 - grey, np.full_like(grey, 90)], axis=3).astype(np.uint8)


def write_clip(path, frames, fps=10):
    with video_writer(path, fps=fps) as write:
        for frame in frames:
            write(frame)
    return path


@pytest.fixture
def clip(tmp_path):
    return write_clip(tmp_path / "clip.mp4", smooth_clip())


def test_grey_video_comes_back(clip):
    back = read_frames(clip)
    assert back.dtype == np.uint8
    np.testing.assert_allclose(back.astype(float), smooth_clip(), atol=8)  # lossy coding


def test_colour_video_comes_back(tmp_path):
    frames = smooth_clip(color=True)
    back = read_frames(write_clip(tmp_path / "clip.mp4", frames), color=True)
    assert back.shape == frames.shape
    assert np.abs(back.astype(float) - frames).mean() < 4  # 4:2:0 coding halves the resolution of colour


def test_odd_sizes_are_padded_not_cut(tmp_path):
    frames = smooth_clip(h=47, w=63)
    back = read_frames(write_clip(tmp_path / "odd.mp4", frames))
    assert back.shape[1:] == (48, 64)
    np.testing.assert_allclose(back[:, :47, :63].astype(float), frames, atol=10)


def test_count_and_rate_are_those_of_the_file(clip):
    assert FrameSource(clip).count() == 12
    assert FrameSource(clip).fps == pytest.approx(10)
    assert FrameSource(clip, every=5).count() == 3
    assert FrameSource(clip, every=5).fps == pytest.approx(2)


def test_every_and_max_frames_choose_frames():
    frames = np.arange(20, dtype=np.uint8).reshape(20, 1, 1)
    assert read_frames(frames, every=3, max_frames=4).ravel().tolist() == [0, 3, 6, 9]


def test_a_source_can_be_read_twice(clip):
    source = FrameSource(clip, max_frames=3)
    first, second = list(source), list(source)
    assert len(first) == 3
    np.testing.assert_array_equal(second, first)


def test_images_of_a_folder_come_in_natural_order(tmp_path):
    for number in (10, 9, 100, 1):
        write_image(tmp_path / f"frame{number}.png", np.full((4, 5), number, np.uint8))
    (tmp_path / "notes.txt").write_text("no image")
    assert read_frames(tmp_path)[:, 0, 0].tolist() == [1, 9, 10, 100]


def test_images_of_16_bits_keep_their_values(tmp_path):
    frame = np.array([[0, 300], [40000, 65535]], np.uint16)
    Image.fromarray(frame).save(tmp_path / "deep.png")
    back = read_frames(tmp_path)
    assert back.dtype == np.uint16
    np.testing.assert_array_equal(back[0], frame)


def test_grey_of_colour_is_what_pillow_says():
    frames = np.random.default_rng(0).integers(0, 256, (2, 5, 6, 3)).astype(np.uint8)
    expected = np.stack([np.asarray(Image.fromarray(frame).convert("L")) for frame in frames])
    assert np.abs(read_frames(frames).astype(int) - expected).max() <= 1  # rounding


def test_grey_frames_become_colour_when_asked():
    frames = smooth_clip(2)
    np.testing.assert_array_equal(read_frames(frames, color=True), np.repeat(frames[..., None], 3, axis=3))


@pytest.mark.parametrize(("resize", "shape"), [((24, 32), (24, 32)), (0.5, (24, 32)), (2.0, (96, 128))])
def test_resize_keeps_the_picture(resize, shape):
    frames = smooth_clip(1)
    small = read_frames(frames, resize=resize)
    assert small.shape[1:] == shape
    assert small.mean() == pytest.approx(frames.mean(), abs=1)


def test_arrays_are_read_from_npy_and_npz(tmp_path):
    frames = smooth_clip(3)
    np.save(tmp_path / "a.npy", frames)
    np.savez(tmp_path / "b.npz", frames=frames, other=np.zeros(3))
    np.testing.assert_array_equal(read_frames(tmp_path / "a.npy"), frames)
    np.testing.assert_array_equal(read_frames(tmp_path / "b.npz"), frames)


@pytest.mark.parametrize("limit", [2, 5, 7, 100])
def test_sampled_frames_are_evenly_spread_and_few_enough(limit):
    frames = np.zeros((50, 1, 1), np.uint8)
    sample, numbers, n_seen = sample_frames(iter(frames), limit)
    assert n_seen == 50
    assert len(sample) == len(numbers) <= limit
    step = numbers[1]
    np.testing.assert_array_equal(numbers, np.arange(0, 50, step))
    assert len(sample) > 0.75 * limit / 2 - 1 or step == 1


def test_a_rare_light_is_held_in_a_sample_of_a_long_clip():
    rng = np.random.default_rng(0)
    frames = rng.normal(100, 2, (2000, 6, 8))
    frames[1003:1006] += 80  # between two frames of the even spread
    sample, numbers, _ = sample_frames(iter(frames), 40)
    assert len(sample) <= 40
    assert ((numbers >= 1003) & (numbers < 1006)).any()
    np.testing.assert_array_equal(sample, frames[numbers])


def test_no_frame_is_refused():
    with pytest.raises(ValueError, match="holds no frame"):
        read_frames(np.zeros((0, 4, 4), np.uint8))


def test_a_missing_path_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.mp4; check the path"):
        FrameSource(tmp_path / "nowhere.mp4")


def test_a_folder_without_images_is_refused(tmp_path):
    with pytest.raises(ValueError, match="holds no image"):
        read_frames(tmp_path)


def test_a_file_that_is_no_video_is_refused(tmp_path):
    path = tmp_path / "text.mp4"
    path.write_text("not a video at all, only some words")
    with pytest.raises(ValueError, match=r"text\.mp4 cannot be read as video"):
        read_frames(path)


def test_a_file_cut_off_is_refused(clip, tmp_path):
    cut = tmp_path / "cut.mp4"
    cut.write_bytes(clip.read_bytes()[: clip.stat().st_size // 2])
    with pytest.raises(ValueError, match=r"cut\.mp4 cannot be read as video.*cut off"):
        read_frames(cut)


def test_sound_without_pictures_is_refused(tmp_path):
    path = tmp_path / "sound.wav"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=8000, layout="mono")
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), format="s16", layout="mono")
        frame.sample_rate = 8000
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    with pytest.raises(ValueError, match="has no video stream"):
        read_frames(path)


def test_frames_that_change_size_are_refused(tmp_path):
    write_image(tmp_path / "1.png", np.zeros((4, 5), np.uint8))
    write_image(tmp_path / "2.png", np.zeros((4, 6), np.uint8))
    with pytest.raises(ValueError, match="frame 1 is 6 x 4 but the first is 5 x 4"):
        read_frames(tmp_path)


def test_a_damaged_image_is_named(tmp_path):
    write_image(tmp_path / "1.png", np.zeros((40, 50), np.uint8))
    (tmp_path / "2.png").write_bytes((tmp_path / "1.png").read_bytes()[:50])
    with pytest.raises(ValueError, match=r"2\.png cannot be read as an image"):
        read_frames(tmp_path)


def test_pickled_arrays_are_refused(tmp_path):
    np.save(tmp_path / "evil.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"evil\.npy cannot be read as an array"):
        read_frames(tmp_path / "evil.npy")


@pytest.mark.parametrize("frames", [np.zeros((3, 4)), np.zeros((3, 4, 5, 2)), np.zeros((3, 4, 4), complex)])
def test_arrays_that_are_not_frames_are_refused(frames):
    with pytest.raises(ValueError, match="frames must be numbers of shape"):
        read_frames(frames)


@pytest.mark.parametrize("options", [{"every": 0}, {"max_frames": 0}, {"resize": -1.0}, {"resize": (0, 5)}])
def test_bad_options_are_named(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        FrameSource(np.zeros((2, 4, 4)), **options)
