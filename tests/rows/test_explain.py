"""Rows explained by directions: the same numbers from tensors, and the most probable ones."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from frpcag.rows.explain import CellModel, explain_rows


def problem(n=30, p=50, r=4, seed=0):
    rng = np.random.default_rng(seed)
    B = np.linalg.qr(rng.normal(size=(p, r)))[0].astype(np.float32)
    truth = (rng.normal(size=(n, r)) * 5) @ B.T
    rows = (truth + 0.1 * rng.normal(size=(n, p))).astype(np.float32)
    wrong = rng.random(rows.shape) < 0.15
    rows[wrong] += 8
    seen = (rng.random(rows.shape) > 0.2).astype(np.float32)
    scale = rng.uniform(0.08, 0.15, p).astype(np.float32)
    return CellModel(B, np.full(r, 1 / 25, np.float32), scale, 0.05), rows * seen, seen, wrong, truth


def test_wrong_cells_are_told_from_right_ones():
    model, rows, seen, wrong, truth = problem()
    said = explain_rows(model, rows, seen, -np.ones_like(rows))
    assert ((said.wrong > 0.5) == (wrong & (seen > 0)))[seen > 0].mean() > 0.99
    assert np.abs(said.values - truth).max() < 0.5
    assert not said.wrong[seen == 0].any()


def test_tensors_give_the_same_numbers():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    model, rows, seen, _, _ = problem()
    rate = np.where(np.arange(50) < 10, 0.3, -1).astype(np.float32) * np.ones_like(rows)
    host = explain_rows(model, rows, seen, rate)
    tensors = explain_rows(model, *(torch.from_numpy(part) for part in (rows, seen, rate)))
    for ours, theirs in zip(host, tensors, strict=True):
        assert_allclose(ours, theirs.numpy(), atol=0.1)  # tensors do not stop when they have settled


def test_a_row_without_wrong_cells_comes_near_its_ridge_solution():
    model, _, _, _, truth = problem()
    rows = truth.astype(np.float32)
    values = explain_rows(model, rows, np.ones_like(rows), -np.ones_like(rows)).values
    weight = 1 / np.square(model.scale.astype(np.float64))
    G = (model.B.T * weight * 1.25) @ model.B + np.diag(model.prior)
    ridge = np.linalg.solve(G, (model.B.T * weight * 1.25) @ truth.T).T @ model.B.T
    assert_allclose(values, ridge, atol=0.1)  # the last step is a finite one
