"""Files that are damaged, forged or made to hurt: each is refused with a ValueError, and with little memory."""

import io
import json
import os
import random
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

import frpcag
from frpcag import FRPCAG
from frpcag.saving import MODELS
from frpcag.saving.archive import write_archive
from frpcag.saving.fields import RESULTS

MEBIBYTE = 2**20


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(0)
    X = np.repeat(3 * rng.normal(size=(2, 5)), 8, axis=0) + rng.normal(size=(16, 5))
    FRPCAG(n_components=2, random_state=np.random.RandomState(3)).fit(X).save(tmp_path / "model.npz")
    return tmp_path / "model.npz"


def members(path):
    """Return the raw members of an archive."""
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def write_members(path, parts, **options):
    with zipfile.ZipFile(path, "w", **options) as archive:
        for name, content in parts.items() if isinstance(parts, dict) else parts:
            archive.writestr(name, content)


def npy(header, data=b""):
    """Return a member whose header says what the caller wants it to say."""
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, header)
    return out.getvalue() + data


def forge(path, change):
    """Change header and arrays and give them a digest that fits, as somebody with bad intent would."""
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    header = json.loads(str(arrays.pop("header")))
    arrays.pop("digest")
    change(header, arrays)
    with path.open("wb") as file:
        write_archive(file, json.dumps(header), arrays)


def answers(model):
    """Return every number of a model, as bytes."""
    out = {}
    for name, value in sorted(vars(model).items()):
        if sp.issparse(getattr(value, "weights", None)):
            value = [getattr(part, field) for part in (value.weights, value.laplacian) for field in ("data", "indices")]
        out[name] = [np.asarray(item).tobytes() for item in value] if isinstance(value, list) else repr(value)
        if isinstance(value, np.ndarray):
            out[name] = value.tobytes()
    out.pop("random_state", None)
    return out


# Damage: each takes the bytes of a good file and a random generator, and gives those of a bad one.


def flip_a_bit(whole, draw):
    out = bytearray(whole)
    out[draw.randrange(len(out))] ^= 1 << draw.randrange(8)
    return bytes(out)


def overwrite_a_stretch(whole, draw):
    out = bytearray(whole)
    at = draw.randrange(len(out))
    for i in range(at, min(at + draw.randrange(1, 200), len(out))):
        out[i] = draw.randrange(256)
    return bytes(out)


def truncate(whole, draw):
    return whole[: draw.randrange(len(whole))]


def cut_out(whole, draw):
    at = draw.randrange(len(whole))
    return whole[:at] + whole[at + draw.randrange(1, 400) :]


def repeat_a_stretch(whole, draw):
    at = draw.randrange(len(whole))
    return whole[:at] + whole[at : at + draw.randrange(1, 400)] + whole[at:]


def lie_in_the_directory(whole, draw):
    """Change a field of a random entry of the list of members."""
    out = bytearray(whole)
    entries = [i for i in range(len(out)) if out[i : i + 4] == b"PK\x01\x02"]
    at = draw.choice(entries) + draw.choice([8, 10, 16, 20, 24, 28, 30, 32, 38, 42])
    struct.pack_into("<H", out, at, draw.choice([0, 1, 8, 14, 93, 255, 4096, 65535]))
    return bytes(out)


def lie_in_the_end(whole, draw):
    """Change the number of members, or where their list is."""
    out = bytearray(whole)
    struct.pack_into("<I", out, len(out) - 22 + draw.choice([8, 12, 16]), draw.choice([0, 7, 2**16, 2**31, 2**32 - 1]))
    return bytes(out)


DAMAGE = (flip_a_bit, overwrite_a_stretch, truncate, cut_out, repeat_a_stretch, lie_in_the_directory, lie_in_the_end)


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_damage_is_refused_or_does_no_harm(path, damage):
    whole, expected = path.read_bytes(), answers(frpcag.load(path))
    draw = random.Random(damage.__name__)
    refused = 0
    for _ in range(60):
        path.write_bytes(damage(whole, draw))
        try:
            assert answers(frpcag.load(path)) == expected  # such as a changed date in the archive
        except ValueError:
            refused += 1
    assert refused >= 30


def swap_members(parts, draw):
    a, b = draw.sample(sorted(parts), 2)
    parts[a], parts[b] = parts[b], parts[a]


def drop_a_member(parts, draw):
    del parts[draw.choice(sorted(parts))]


def add_a_member(parts, draw):
    name = draw.choice(["array_99.npy", "../evil.npy", "/etc/x.npy", "array_0", "a b.npy", "header.npy/", "digest.txt"])
    parts[name] = parts["array_0.npy"]


def lie_about_shape_and_dtype(parts, draw):
    name = draw.choice([name for name in sorted(parts) if name.startswith("array")])
    header = {
        "descr": draw.choice(["<f8", "<f4", "|u1", "<i8", ">f8", "|O", "<U9", "<c16", "<M8[s]", "|V8", [("a", "<f8")]]),
        "fortran_order": draw.random() < 0.5,
        "shape": draw.choice([(), (0,), (7,), (16, 5), (2**40,), (2**62, 2**62), (0, 2**60), (-1,), (1,) * 40]),
    }
    parts[name] = npy(header, parts[name][128:])


def garbage(parts, draw):
    parts[draw.choice(sorted(parts))] = draw.randbytes(draw.randrange(300))


FORGERIES = (swap_members, drop_a_member, add_a_member, lie_about_shape_and_dtype, garbage)


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda forgery: forgery.__name__)
def test_other_members_are_refused(path, forgery):
    whole, draw = members(path), random.Random(forgery.__name__)
    for _ in range(40):
        parts = dict(whole)
        forgery(parts, draw)
        write_members(path, parts)
        if parts != whole:
            with pytest.raises(ValueError, match=r"model\.npz "):
                frpcag.load(path)


def random_json(draw, depth=2):
    choices = [None, True, -1, 0, 7, 2**70, 1e300, float("nan"), float("inf"), "", "array_0", "x" * 50, {}, []]
    if depth:
        choices += [[random_json(draw, depth - 1)], {"array": random_json(draw, depth - 1)}]
        choices += [{kind: random_json(draw, depth - 1)} for kind in ("tuple", "dict", "names", "random", "sparse")]
        choices += [{"graph": random_json(draw, depth - 1)}, {"model": random_json(draw, depth - 1)}]
    return draw.choice(choices)


def test_what_is_loaded_from_a_forged_header_still_cleans_rows(path):
    whole, rows = path.read_bytes(), frpcag.load(path).low_rank_[:2] + 1
    draw = random.Random(5)
    loaded = 0
    for _ in range(150):
        path.write_bytes(whole)

        def change(header, arrays):
            target = draw.choice([header, header["results"], header["results"]])
            name = draw.choice(sorted(target))
            if draw.random() < 0.2:
                del target[name]
            else:
                target[name] = random_json(draw)

        forge(path, change)
        try:
            model = frpcag.load(path)
        except ValueError:
            continue
        # Such as another number of steps, or no sample graph.
        assert np.isfinite(model.denoise(rows)).all()
        loaded += 1
    assert 3 <= loaded < 75


def spoil(name, index, value):
    def change(header, arrays):
        array = header["results"][name]["array"]
        arrays[array] = arrays[array].copy()
        arrays[array][index] = value

    return change


def graph_weight(value):
    def change(header, arrays):
        arrays[header["results"]["sample_graph_"]["graph"]["weights"]["sparse"]["data"]][0] = value

    return change


def as_dtype(name, dtype):
    def change(header, arrays):
        array = header["results"][name]["array"]
        arrays[array] = arrays[array].astype(dtype)

    return change


def set_result(name, value):
    def change(header, arrays):
        header["results"][name] = value

    return change


def random_position(header, arrays):
    header["params"]["random_state"]["random"]["dict"]["pos"] = 10**6


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (spoil("low_rank_", (3, 2), np.nan), "low_rank_ has entries that are NaN or infinite"),
        (spoil("components_", (0, 0), np.inf), "components_ has entries that are NaN or infinite"),
        (spoil("singular_values_", 0, -1.0), "singular_values_ has a value that is not >= 0"),
        (spoil("scale_", 0, 0.0), "scale_ has a value that is not > 0"),
        (graph_weight(np.nan), r"sample_graph_\.weights has entries that are NaN"),
        (graph_weight(-1.0), r"sample_graph_\.weights has a value that is not >= 0"),
        (as_dtype("low_rank_", np.float16), "low_rank_ has dtype float16"),
        (as_dtype("mean_", np.int64), "mean_ has dtype int64"),
        (set_result("gamma1_", float("nan")), "gamma1_ is nan, not a finite number"),
        (set_result("n_iter_", 2.5), r"n_iter_ is 2\.5, not an integer"),
        (set_result("n_features_in_", 6), "n_features_in_ is 6, not 5"),
        (set_result("converged_", "yes"), "converged_ is a str, not a bool"),
        (set_result("extra_", 1), "extra_ is not a result of FRPCAG"),
        (random_position, "a random state is not one of MT19937"),
    ],
)
def test_results_that_cannot_be_are_named(path, change, words):
    forge(path, change)
    with pytest.raises(ValueError, match=f"does not hold a whole model: {words}"):
        frpcag.load(path)


@pytest.mark.parametrize("name", ["sample_indices_"])
def test_places_outside_the_data_are_named(name, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 8))
    kept = {"n_samples_kept": 20, "random_state": 0}
    frpcag.CompressiveFRPCAG(**kept).fit(X).save(tmp_path / "model.npz")
    forge(tmp_path / "model.npz", spoil(name, 3, 10**9))
    with pytest.raises(ValueError, match=rf"{name} has a value that is not < (8|60)"):
        frpcag.load(tmp_path / "model.npz")


def test_compressed_members_are_refused_even_if_they_are_small(path):
    write_members(path, members(path), compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match=r"is not a saved frpcag model \(member header is compressed"):
        frpcag.load(path)


def test_members_that_claim_more_bytes_than_the_file_are_refused(path):
    whole = bytearray(path.read_bytes())
    struct.pack_into("<II", whole, whole.index(b"PK\x01\x02") + 20, 2**31, 2**31)
    path.write_bytes(bytes(whole))
    with pytest.raises(ValueError, match=r"its members have 2147.* bytes, more than the file itself"):
        frpcag.load(path)


def test_members_of_other_names_are_refused(path):
    write_members(path, {**members(path), "more.npy": members(path)["array_0.npy"]})
    with pytest.raises(ValueError, match="its members do not have the names of a model"):
        frpcag.load(path)


def test_a_member_that_comes_twice_is_refused(path):
    parts = [*members(path).items(), ("array_0.npy", members(path)["array_1.npy"])]
    with pytest.warns(UserWarning, match="Duplicate name"):
        write_members(path, parts)
    with pytest.raises(ValueError, match=r"is not a saved frpcag model \(member array_0 occurs twice\)"):
        frpcag.load(path)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    if not hasattr(os, "mkfifo"):
        pytest.skip("no pipes in folders here")
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(ValueError, match="it is not a regular file"):
        frpcag.load(tmp_path / "pipe.npz")


def test_every_saved_class_has_a_table():
    assert set(RESULTS) == set(MODELS)


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    model = FRPCAG(n_components=2).fit(np.random.default_rng(0).normal(size=(12, 4)))
    model.low_rank_[0, 0] = np.nan
    with pytest.raises(ValueError, match="low_rank_ has entries that are NaN"):
        model.save(tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []


# Files that unpack, parse or list to much more than they are. Each is made by the test, read by a child.


def compressed_zeros(path, parts):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in parts.items():
            if name != "array_0.npy":
                archive.writestr(name, content)
        with archive.open("array_0.npy", "w", force_zip64=True) as out:
            out.write(npy({"descr": "|u1", "fortran_order": False, "shape": (512 * MEBIBYTE,)}))
            for _ in range(32):
                out.write(bytes(16 * MEBIBYTE))


def long_list_of_members(path, parts):
    """A hole of 1 GiB that the end of the archive calls its list of members."""
    with open(path, "wb") as file:
        file.truncate(2**30)
        file.seek(2**30)
        file.write(struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 9, 9, 2**30, 0, 0))


def long_array_header(path, parts):
    """The header of format 2.0 may claim to have any length."""
    parts["header.npy"] = b"\x93NUMPY\x02\x00" + struct.pack("<I", 400 * MEBIBYTE) + bytes(400 * MEBIBYTE)
    write_members(path, parts)


def nested_text(text):
    def make(path, parts):
        parts["header.npy"] = npy(
            {"descr": f"<U{len(text)}", "fortran_order": False, "shape": ()}, text.encode("utf-32-le")
        )
        write_members(path, parts)

    return make


BOMBS = {
    "compressed": compressed_zeros,
    "list": long_list_of_members,
    "array-header": long_array_header,
    "json-deep": nested_text("[" * 8_000_000),
    "json-wide": nested_text("[" + '{"":1},' * 1_190_000 + "{}]"),
    "json-strings": nested_text('["ab"' + ',"\u0100"' * 2_000_000 + "]"),
    "json-long": nested_text('"' + "x" * 70_000_000 + '"'),
}
# Not ru_maxrss: a child starts with that of its parent.
CHILD = """
import sys
import frpcag
import frpcag.video.separator  # what a load imports, scikit-learn and all, is no part of the refusal

def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) // 1024

before = peak()
for path in sys.argv[1:]:
    try:
        frpcag.load(path)
    except ValueError as error:
        print(peak() - before, error)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is read from /proc")
def test_refusing_takes_little_memory(path, tmp_path):
    for name, bomb in BOMBS.items():
        bomb(tmp_path / name, members(path))
    command = [sys.executable, "-c", CHILD, *(str(tmp_path / name) for name in BOMBS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = dict(zip(BOMBS, done.stdout.splitlines(), strict=True))
    for name, line in lines.items():
        grown, words = line.split(" ", 1)
        assert "is not a saved frpcag model" in words, name
        assert int(grown) < 300, name
