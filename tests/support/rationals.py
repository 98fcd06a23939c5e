"""The problem of one sample graph in exact fractions: its optimum by trying every set of active entries.

Nothing of the library is used here. Columns are independent without a feature graph, so that a column of four samples
has 81 sets to try: each residual is below, inside or above the bend of the loss.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np


def value(x, u, W, gamma, loss, delta):
    """Return the objective of one column."""
    edges = sum(W[i][k] * (u[i] - u[k]) ** 2 for i in range(len(u)) for k in range(i))
    return sum(_phi(a - b, loss, delta) for a, b in zip(x, u, strict=True)) + gamma * edges


def true_gap(X, U, W, gamma, loss, delta):
    """Return the objective at ``U`` and how far it lies above the optimum."""
    W, gamma, delta = [[Fraction(w) for w in row] for row in W.tolist()], Fraction(gamma), Fraction(delta)
    at = best = Fraction(0)
    for x, u in zip(np.asarray(X, float).T.tolist(), np.asarray(U, float).T.tolist(), strict=True):
        x, u = [Fraction(v) for v in x], [Fraction(v) for v in u]
        at += value(x, u, W, gamma, loss, delta)
        best += value(x, _solution(x, W, gamma, loss, delta), W, gamma, loss, delta)
    return at, at - best


def _phi(r, loss, delta):
    if loss == "l2":
        return r * r
    if loss == "huber" and abs(r) <= delta:
        return r * r / (2 * delta)
    return abs(r) - (delta / 2 if loss == "huber" else 0)


def _solution(x, W, gamma, loss, delta):
    n = len(x)
    slope = [[2 * gamma * ((sum(W[i]) if i == k else 0) - W[i][k]) for k in range(n)] for i in range(n)]
    bend = {"l1": Fraction(0), "huber": delta, "l2": None}[loss]
    for signs in [(0,) * n] if loss == "l2" else product((0, -1, 1), repeat=n):
        if not any(s == 0 for s in signs):  # moving all entries alike brings one of them to the bend
            continue
        A, b = [row[:] for row in slope], [Fraction(s) for s in signs]
        for i, s in enumerate(signs):
            if s == 0 and loss == "l1":  # u = x
                A[i], b[i] = [Fraction(int(i == k)) for k in range(n)], x[i]
            elif s == 0:  # V = phi'(x - u)
                stiff = 2 if loss == "l2" else 1 / delta
                A[i][i] += stiff
                b[i] = stiff * x[i]
        u = _solved(A, b)
        V = [sum(w * v for w, v in zip(row, u, strict=True)) for row in slope]
        R = [a - c for a, c in zip(x, u, strict=True)]
        if loss == "l2" or all(
            (abs(v) <= 1 and abs(r) <= bend) if s == 0 else s * r >= bend for s, r, v in zip(signs, R, V, strict=True)
        ):
            return u
    raise AssertionError("no set of active entries is optimal")


def _solved(A, b):
    """Solve by elimination; a connected graph with one entry held leaves no zero pivot."""
    n = len(b)
    M = [[*row, right] for row, right in zip(A, b, strict=True)]
    for i in range(n):
        j = next(k for k in range(i, n) if M[k][i] != 0)
        M[i], M[j] = M[j], M[i]
        for k in range(n):
            if k != i and M[k][i] != 0:
                f = M[k][i] / M[i][i]
                M[k] = [a - f * c for a, c in zip(M[k], M[i], strict=True)]
    return [M[i][n] / M[i][i] for i in range(n)]
