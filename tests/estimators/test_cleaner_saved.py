"""A saved cleaner: it judges new rows as before, and forged files are refused."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import frpcag
from frpcag import FRPCAG, RobustGraphCleaner
from frpcag.saving.archive import write_archive


def grid_of_digits():
    """Return a few images with a value that overwrote pixels, so that every kind of part is there."""
    from sklearn.datasets import load_digits

    rng = np.random.default_rng(0)
    X = load_digits().data[:150] / 16
    X[rng.random(X.shape) < 0.15] = 1.0
    return X


def covered_discs():
    """Return discs on a background of zero, each behind a square of zero."""
    rng = np.random.default_rng(2)
    y, x = np.mgrid[:12, :12]
    centers, radii = rng.uniform(4, 8, size=(2, 120, 1, 1)), rng.uniform(4, 6, size=(120, 1, 1))
    inside = (y - centers[0]) ** 2 + (x - centers[1]) ** 2 < radii**2
    X = inside * (1 + 0.3 * np.sin(x / 2 + rng.uniform(0, 6, size=(120, 1, 1))))
    for image in X:
        top, left = rng.integers(0, 8, size=2)
        image[top : top + 5, left : left + 5] = 0
    return X.reshape(120, -1)


def small_table():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 6)) + 0.05 * rng.normal(size=(80, 6))
    X[rng.random(X.shape) < 0.05] += 6
    return X


@pytest.fixture(scope="module", params=["digits", "discs", "table", "few"])
def cleaner(request):
    makers = {"digits": grid_of_digits, "discs": covered_discs, "table": small_table, "few": lambda: small_table()[:6]}
    X = makers[request.param]()
    return RobustGraphCleaner(FRPCAG(tol=1e-2, n_neighbors=4), random_state=0).fit(X), X


def test_a_loaded_cleaner_cleans_known_and_new_rows_alike(cleaner, tmp_path):
    model, X = cleaner
    model.save(tmp_path / "model.npz")
    loaded = frpcag.load(tmp_path / "model.npz")
    rows = X[:6] * 1.01
    rows[0, 0], rows[1, 1] = np.nan, 40.0
    assert_array_equal(loaded.transform(rows), model.transform(rows))
    assert_array_equal(loaded.transform(X[::-1]), model.cleaned_[::-1])


def test_copies_in_float32_and_with_negative_zeros_are_training_rows(cleaner):
    model, X = cleaner
    for copies in (X.astype(np.float32), np.where(X == 0, -0.0, X)):
        assert_array_equal(model.transform(copies), model.cleaned_.astype(copies.dtype))


def test_the_saved_cleaners_have_overwriting_values_directions_and_nothing_learnt(cleaner):
    model, X = cleaner
    rules = model.rules_.model
    if X.shape[1] == 64:
        assert rules.W2 is not None
        assert rules.repeats
    elif X.shape[1] == 144:
        assert [one.kind for one in rules.repeats] == ["rectangle"]
    elif len(X) > 10:
        assert rules.low_rank.B_.shape == (6, 2)
    else:
        assert rules is None


def forge(path, change):
    """Change header and arrays and give them a digest that fits, as somebody with bad intent would."""
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    header = json.loads(str(arrays.pop("header")))
    arrays.pop("digest")
    change(header["results"]["rules_"]["part"]["fields"], arrays)
    with path.open("wb") as file:
        write_archive(file, json.dumps(header), arrays)


def model_field(*names, value):
    def change(fields, arrays):
        at = fields["model"]["part"]["fields"]
        for name in names[:-1]:
            at = at[name]["part"]["fields"]
        at[names[-1]] = value

    return change


def foreign_columns(fields, arrays):
    fold = fields["model"]["part"]["fields"]["graph"]["part"]["fields"]["folds"]["list"][0]["array"]
    arrays[fold] = arrays[fold] + 1000


def fewer_keys(fields, arrays):
    arrays[fields["keys"]["array"]] = arrays[fields["keys"]["array"]][:-1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (fewer_keys, r"rules_.keys has shape \(149, 32\), not \(150, 32\)"),
        (foreign_columns, r"rules_.model.graph.folds\[\] has a value that is not < 64"),
        (model_field("mixture", "span", value=0.0), "rules_.model.mixture.span has a value that is not > 0"),
        (model_field("graph", "metric", value="cosine"), "rules_.model.graph.metric is 'cosine', not one of"),
        (model_field("mixture", value=None), "rules_.model.mixture is a NoneType, not a Mixture"),
        (model_field("predict", value=1), "rules_.model.predict is not a result of CellModel"),
        (model_field("mixture", value={"part": {"kind": "Popen", "fields": {}}}), "'part' is not a known kind"),
    ],
)
def test_forged_rules_are_refused(change, words, tmp_path, table_file):
    path = tmp_path / "model.npz"
    path.write_bytes(table_file.read_bytes())
    forge(path, change)
    with pytest.raises(ValueError, match=f"does not hold a whole model: {words}"):
        frpcag.load(path)


@pytest.fixture(scope="module")
def table_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("cleaner") / "model.npz"
    RobustGraphCleaner(FRPCAG(tol=1e-2), random_state=0).fit(grid_of_digits()).save(path)
    return path
