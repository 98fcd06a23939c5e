"""Boxes around blobs."""

import numpy as np

from frpcag.video.masks import boxes_of


def test_boxes_hold_their_blobs_largest_first():
    mask = np.zeros((40, 60), bool)
    mask[3:9, 5:25] = True
    mask[20:38, 30:50] = True
    mask[21, 31] = False
    assert boxes_of(mask).tolist() == [[30, 20, 20, 18, 359], [5, 3, 20, 6, 120]]


def test_corners_that_touch_are_one_blob_and_specks_get_no_box():
    mask = np.zeros((50, 100), bool)
    mask[0:5, 0:5] = mask[5:10, 5:10] = True
    mask[30, 30] = True
    assert boxes_of(mask).tolist() == [[0, 0, 10, 10, 50]]
    assert len(boxes_of(mask, least_area=1)) == 2
    assert boxes_of(np.zeros((5, 5), bool)).shape == (0, 5)
