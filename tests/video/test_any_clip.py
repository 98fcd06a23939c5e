"""Clips as they come: turned, interlaced, uneven in time, with alpha, with more bits, with sound."""

import struct

import numpy as np
import pytest
from reproduction.evaluate.foreground import mask_scores
from scipy.ndimage import gaussian_filter

from frpcag import BackgroundSeparator
from frpcag.video.encode import video_writer
from frpcag.video.frames import FrameSource, read_frames

av = pytest.importorskip("av")


def ramp(n=4, h=32, w=48):
    """Smooth pictures whose corners all differ."""
    y, x = np.meshgrid(np.arange(h), np.arange(w), indexing="ij")
    return np.stack([20 + 3 * x + 2 * y + t for t in range(n)]).astype(np.uint8)


def write_coded(path, frames, codec, pix_fmt, *, form, options=None, prepare=None):
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=10, options=options or {})
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt = pix_fmt
        for frame in frames:
            picture = av.VideoFrame.from_ndarray(frame, format=form)
            if pix_fmt != form:
                picture = picture.reformat(format=pix_fmt)
            container.mux(stream.encode(picture))
        container.mux(stream.encode())
    return path


def write_plain(path, frames, **options):
    with video_writer(path, **options) as write:
        for frame in frames:
            write(frame)
    return path


@pytest.mark.parametrize(
    ("matrix", "place"),
    [
        # Where the pixel at column x and row y is shown, by the matrix of the track header: a x + c y, b x + d y.
        ((0, 1, -1, 0), lambda x, y, w, h: (h - 1 - y, x)),
        ((-1, 0, 0, -1), lambda x, y, w, h: (w - 1 - x, h - 1 - y)),
        ((0, -1, 1, 0), lambda x, y, w, h: (y, w - 1 - x)),
    ],
)
def test_a_clip_of_a_turned_phone_is_upright(tmp_path, matrix, place):
    path = write_plain(tmp_path / "phone.mp4", ramp())
    stored = read_frames(path)
    data = bytearray(path.read_bytes())
    at = data.index(b"tkhd") + 4 + 40
    a, b, c, d = (value * 0x10000 for value in matrix)
    data[at : at + 36] = struct.pack(">9i", a, b, 0, c, d, 0, 0, 0, 0x40000000)
    path.write_bytes(data)
    shown = read_frames(path)
    h, w = stored.shape[1:]
    for x, y in ((0, 0), (w - 1, 0), (5, 9), (w - 1, h - 1)):
        column, row = place(x, y, w, h)
        assert shown[2, row, column] == stored[2, y, x]


def test_uneven_times_are_read_and_written(tmp_path):
    times = [0.0, 0.1, 0.5, 0.55, 2.0]
    with video_writer(tmp_path / "uneven.mp4", fps=25) as write:
        for seconds, frame in zip(times, ramp(5), strict=True):
            write(frame, seconds)
    back = [seconds for seconds, _ in FrameSource(tmp_path / "uneven.mp4").timed()]
    np.testing.assert_allclose(back, times, atol=1e-3)


def test_frames_without_times_are_as_far_apart_as_the_rate_says():
    frames = FrameSource(np.zeros((6, 2, 2), np.uint8), every=2)
    assert [seconds for seconds, _ in frames.timed()] == pytest.approx([0, 0.08, 0.16])


def test_interlaced_frames_show_one_moment(tmp_path):
    frames = ramp(6)
    frames[:, 1::2] = 255 - frames[:, 1::2]  # the second field is another picture
    options = {"flags": "+ilme+ildct", "qscale": "2", "bf": "0"}
    path = write_coded(tmp_path / "tv.avi", frames, "mpeg2video", "yuv420p", form="gray", options=options)
    with av.open(str(path)) as container:
        if not next(container.decode(video=0)).interlaced_frame:
            pytest.skip("this PyAV writes no interlaced MPEG-2")
    back = read_frames(path).astype(float)
    assert np.abs(np.diff(back, axis=1)).max() < 60  # neighbouring lines belong together again


def test_alpha_is_left_out(tmp_path):
    frames = np.dstack([np.dstack([ramp(1)[0]] * 3), np.full((32, 48), 7, np.uint8)])[None].repeat(3, axis=0)
    path = write_coded(tmp_path / "alpha.mov", frames, "png", "rgba", form="rgba")
    np.testing.assert_allclose(read_frames(path).astype(float), ramp(1).repeat(3, axis=0), atol=2)
    assert read_frames(path, color=True).shape == (3, 32, 48, 3)


@pytest.mark.parametrize(
    ("pix_fmt", "dtype"), [("gray", np.uint8), ("gray10le", np.uint16), ("yuv420p10le", np.uint16)]
)
def test_bits_are_kept(tmp_path, pix_fmt, dtype):
    deep = ramp().astype(np.uint16) * 257
    path = write_coded(tmp_path / "deep.mkv", deep, "ffv1", pix_fmt, form="gray16le")
    back = read_frames(path)
    assert back.dtype == dtype
    top = np.iinfo(dtype).max
    np.testing.assert_allclose(back / top, deep / 65535, atol=0.1 if pix_fmt.startswith("yuv") else 0.01)  # TV range


def tone(path, codec, seconds, rate=8000):
    """A clip of grey frames with a tone."""
    with av.open(str(path), "w") as container:
        video = container.add_stream("mpeg4", rate=10)
        video.height, video.width, video.pix_fmt = 32, 48, "yuv420p"
        audio = container.add_stream(codec, rate=rate, layout="mono")
        for frame in ramp(int(10 * seconds)):
            container.mux(video.encode(av.VideoFrame.from_ndarray(frame, format="gray").reformat(format="yuv420p")))
        container.mux(video.encode())
        wave = (8000 * np.sin(np.arange(int(rate * seconds)) * 0.3)).astype(np.int16)
        for start in range(0, len(wave), 1000):
            sound = av.AudioFrame.from_ndarray(wave[None, start : start + 1000], format="s16", layout="mono")
            sound.sample_rate, sound.pts = rate, start
            container.mux(audio.encode(sound))
        container.mux(audio.encode())
    return path


def heard(path):
    with av.open(str(path)) as container:
        return np.concatenate([frame.to_ndarray().ravel().astype(float) for frame in container.decode(audio=0)])


@pytest.mark.parametrize(("name", "codec"), [("clip.mp4", "aac"), ("clip.mkv", "pcm_s16le")])
def test_the_sound_of_a_clip_goes_along_and_ends_with_the_frames(tmp_path, name, codec):
    path = tone(tmp_path / name, codec, 3.0)
    assert FrameSource(path).has_sound()
    for n_frames, seconds in ((30, 3.0), (10, 1.0)):
        with video_writer(tmp_path / "out.mp4", fps=10, sound_of=path) as write:
            for frame in ramp(n_frames):
                write(frame)
        wave = heard(tmp_path / "out.mp4")
        assert len(wave) / 8000 == pytest.approx(seconds, abs=0.4)
        assert wave.std() > 0
        assert len(read_frames(tmp_path / "out.mp4")) == n_frames


def test_a_clip_without_sound_gives_none(tmp_path):
    path = write_plain(tmp_path / "mute.mp4", ramp())
    assert not FrameSource(path).has_sound()
    write_plain(tmp_path / "out.mp4", ramp(), sound_of=path)
    assert not FrameSource(tmp_path / "out.mp4").has_sound()


def test_what_a_codec_smears_around_a_thing_that_moves_is_not_foreground(tmp_path):
    rng = np.random.default_rng(0)
    wall = 110 + gaussian_filter(rng.normal(size=(96, 128)), 3) * 150
    frames = wall + rng.normal(0, 2, (40, 96, 128))
    truth = np.zeros(frames.shape, int)
    for t in range(40):
        truth[t, 30:54, round(2.6 * t) : round(2.6 * t) + 24] = 1
    frames = np.where(truth, 220, np.clip(frames, 0, 255)).astype(np.uint8)
    path = write_coded(
        tmp_path / "small.mp4", frames, "mpeg4", "yuv420p", form="gray", options={"qmin": "6", "qmax": "6"}
    )
    coded = read_frames(path)
    assert np.median(np.abs(coded[1:].astype(int) - coded[:-1])) < 1  # the noise is gone
    assert mask_scores(BackgroundSeparator().fit(coded).mask_, truth)["f1"] > 0.85


def test_images_of_other_sizes_are_resized_where_a_size_is_given(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    for number, picture in enumerate(ramp()):
        image = Image.fromarray(picture)
        (image.resize((30, 20)) if number == 2 else image).save(tmp_path / f"{number}.png")
    with pytest.raises(ValueError, match=r"frame 2 is 30 x 20 but the first is 48 x 32.*resize"):
        read_frames(tmp_path)
    assert read_frames(tmp_path, resize=(16, 24)).shape == (4, 16, 24)
