"""Corruptions: where they fall, how many there are, what they leave alone."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from reproduction import block_occlusion, corrupt, missing_pixels, salt_and_pepper

CORRUPTIONS = {
    "block_occlusion": lambda X, fraction, **options: block_occlusion(X, (12, 10), fraction, **options),
    "missing_pixels": missing_pixels,
    "salt_and_pepper": salt_and_pepper,
}
every_corruption = pytest.mark.parametrize("corruption", CORRUPTIONS.values(), ids=CORRUPTIONS)


@pytest.fixture
def X():
    return np.random.default_rng(0).uniform(1, 2, (40, 120))


@every_corruption
def test_corruption_leaves_its_input_and_the_unmasked_entries_untouched(X, corruption):
    X.flags.writeable = False
    corrupted, mask = corruption(X, 0.25, random_state=0)
    assert mask.dtype == bool
    assert_array_equal(corrupted[~mask], X[~mask])


@every_corruption
def test_corruption_repeats_with_its_seed_and_changes_with_another(X, corruption):
    first, again, other = (corruption(X, 0.25, random_state=seed)[1] for seed in (0, 0, 1))
    assert_array_equal(first, again)
    assert (first != other).any()


@every_corruption
def test_corruption_of_nothing_changes_nothing(X, corruption):
    corrupted, mask = corruption(X, 0, random_state=0)
    assert_array_equal(corrupted, X)
    assert not mask.any()


@every_corruption
def test_corruption_of_everything_masks_everything(X, corruption):
    assert corruption(X, 1, random_state=0)[1].all()


@every_corruption
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_corruption_keeps_the_dtype(X, corruption, dtype):
    assert corruption(X.astype(dtype), 0.25, random_state=0)[0].dtype == dtype


@every_corruption
@pytest.mark.parametrize("fraction", [-0.1, 1.1, 25, np.nan])
def test_corruption_refuses_a_fraction_outside_zero_to_one(X, corruption, fraction):
    with pytest.raises(ValueError, match=rf"fraction={fraction} must lie in \[0, 1\]"):
        corruption(X, fraction)


@every_corruption
def test_corruption_refuses_what_is_not_a_matrix(corruption):
    with pytest.raises(ValueError, match=r"X has shape \(3,\)"):
        corruption(np.ones(3), 0.1)


@pytest.mark.parametrize("fraction", [0.01, 0.15, 0.25, 0.4, 0.9])
@pytest.mark.parametrize("shape", [(32, 32), (56, 46), (20, 60)])
def test_block_is_one_full_rectangle_of_about_the_fraction(shape, fraction):
    _, mask = block_occlusion(np.ones((20, shape[0] * shape[1])), shape, fraction, random_state=0)
    for image in mask.reshape(20, *shape):
        rows, columns = np.flatnonzero(image.any(axis=1)), np.flatnonzero(image.any(axis=0))
        box = image[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        assert box.all()
        # The width is rounded to whole pixels: half a pixel times the height of the block at most.
        assert abs(box.sum() - fraction * image.size) <= box.shape[0] / 2


def test_blocks_are_placed_uniformly_over_all_positions():
    _, mask = block_occlusion(np.ones((30_000, 16)), (4, 4), 0.25, random_state=0)
    places, counts = np.unique(mask, axis=0, return_counts=True)
    assert len(places) == 9
    # Nine places of 30000 / 9 each, standard deviation 54.
    assert np.abs(counts - 30_000 / 9).max() < 5 * 54


def test_block_has_the_value_asked_for(X):
    corrupted, mask = block_occlusion(X, (12, 10), 0.25, value=np.nan, random_state=0)
    assert_array_equal(np.isnan(corrupted), mask)


@pytest.mark.parametrize("shape", [(12, 11), (120,), (-12, -10)])
def test_block_refuses_a_shape_that_is_not_the_image(X, shape):
    with pytest.raises(ValueError, match=r"shape=.* does not match n_features=120"):
        block_occlusion(X, shape, 0.25)


@pytest.mark.parametrize("fraction", [0.1, 0.3, 0.333, 0.999])
@pytest.mark.parametrize("corruption", [missing_pixels, salt_and_pepper])
def test_every_row_loses_the_same_number_of_pixels(X, corruption, fraction):
    _, mask = corruption(X, fraction, random_state=0)
    assert_array_equal(mask.sum(axis=1), round(fraction * 120))


def test_missing_pixels_fall_on_every_pixel_alike():
    _, mask = missing_pixels(np.ones((20_000, 10)), 0.3, random_state=0)
    # 6000 in each column, standard deviation 65.
    assert np.abs(mask.sum(axis=0) - 6000).max() < 5 * 65


def test_missing_pixels_do_not_depend_on_the_block_size(X, monkeypatch):
    _, mask = missing_pixels(X, 0.3, random_state=0)
    monkeypatch.setattr(corrupt, "_BLOCK_ENTRIES", 500)
    assert_array_equal(missing_pixels(X, 0.3, random_state=0)[1], mask)


def test_missing_pixels_have_the_value_asked_for(X):
    corrupted, mask = missing_pixels(X, 0.3, value=-7, random_state=0)
    assert_array_equal(corrupted == -7, mask)


@pytest.mark.parametrize("value", [np.nan, -1, 300, 0.5])
def test_missing_pixels_refuse_a_value_the_dtype_cannot_hold(value):
    with pytest.raises(ValueError, match=f"value={value} cannot be held by X of dtype uint8"):
        missing_pixels(np.ones((2, 4), dtype=np.uint8), 0.5, value=value)


def test_salt_and_pepper_come_in_equal_shares_from_the_range_of_the_data(X):
    corrupted, mask = salt_and_pepper(X, 0.5, random_state=0)
    salt, pepper = corrupted[mask] == X.max(), corrupted[mask] == X.min()
    assert (salt ^ pepper).all()
    # 2400 fair coins: standard deviation 24.5.
    assert abs(salt.sum() - pepper.sum()) < 2 * 5 * 24.5


def test_salt_and_pepper_take_the_values_asked_for(X):
    corrupted, mask = salt_and_pepper(X, 0.5, low=-1, high=9, random_state=0)
    assert set(corrupted[mask]) == {-1.0, 9.0}


def test_salt_of_nothing_but_missing_entries_asks_for_its_values():
    X = np.full((3, 4), np.nan)
    with pytest.raises(ValueError, match=r"pass both, such as low=0, high=1"):
        salt_and_pepper(X, 0.5)
    assert salt_and_pepper(X, 0.5, low=0, high=1, random_state=0)[1].sum() == 6
