"""The robust fit of single rows, compiled by Numba: one row after another, each by itself to the last bit.

Serial kernels that release the GIL; callers run disjoint blocks of rows in threads of their own.
"""

from __future__ import annotations

import numpy as np

from frpcag.runtime.compiled import compiled_reordered as compiled
from frpcag.runtime.compiled import inlined

# Features that go through all parts of a step while they are in the cache.
TILE = 64


@inlined
def _judge(z, t, finesse, narrow, q, there, wrong, right, same_share, said, w):
    """Write the probability that each of some cells is wrong, and the pull of its residual; return their sums."""
    one, zero, quarter = np.float32(1), np.float32(0), np.float32(0.25)
    any_sum, same_sum = zero, zero
    for j in range(len(z)):
        v = (z[j] - t[j]) * finesse[j]
        u = v * narrow
        y = one + quarter * u * u
        fall = one / (y * y * np.sqrt(y))
        same = q[j] >= zero
        bad = same_share if same else wrong
        good = ((one - same_share) * q[j] if same else right * finesse[j] * narrow) * fall
        x = there[j] * bad / (bad + good)
        said[j] = x
        any_sum += zero if same else x
        same_sum += x if same else zero
        w[j] = (there[j] - x) * np.float32(1.25) / y * v * finesse[j]
    return any_sum, same_sum


@compiled
def fit_rows(Z, seen, rate, B, scale, prior, inverse, density, usual, widths, relax, momentum, settled, most, P, post):
    """Fit each row by ``B a`` and write the prediction of its cells and the probability that they are wrong.

    Parameters as in `frpcag.rows.explain.CellModel`; ``seen`` is 1 and 0, ``rate`` negative off repeated values.
    """
    n, p = Z.shape
    r = B.shape[1]
    a, moved, slope = np.empty(r, np.float32), np.empty(r, np.float32), np.empty(r, np.float32)
    t, w = np.empty(TILE, np.float32), np.empty(TILE, np.float32)
    one = np.float32(1)
    finesse = one / scale
    for i in range(n):
        count = np.float32(0)
        for j in range(p):
            count += seen[i, j]
        count = max(count, one)
        a[:] = 0
        moved[:] = 0
        any_share, same_share = np.float32(0.05), np.float32(0.05)
        last = False
        for step in range(len(widths)):
            width = widths[step]
            narrow = one / width
            last = last or step == len(widths) - 1
            for c in range(r):
                slope[c] = -prior[c] * a[c]
            any_sum, same_sum = np.float32(0), np.float32(0)
            wrong = any_share * density
            right = np.float32(0.375) * (one - any_share)
            for start in range(0, p, TILE):
                m = min(TILE, p - start)
                tile = B[start : start + m]
                for j in range(m):
                    row = tile[j]
                    total = np.float32(0)
                    for c in range(r):
                        total += row[c] * a[c]
                    t[j] = total
                z, q = Z[i, start : start + m], rate[i, start : start + m]
                there, said = seen[i, start : start + m], post[i, start : start + m]
                if last:
                    P[i, start : start + m] = t[:m]
                sums = _judge(z, t, finesse[start : start + m], narrow, q, there, wrong, right, same_share, said, w)
                any_sum += sums[0]
                same_sum += sums[1]
                for j in range(m):
                    row, weight = tile[j], w[j]
                    for c in range(r):
                        slope[c] += row[c] * weight
            if last:
                break
            any_share = min(max(any_sum / count - usual[0], np.float32(1e-3)), most)
            same_share = min(max(same_sum / count - usual[1], np.float32(1e-5)), most)
            for c in range(r):
                total = np.float32(0)
                for d in range(r):
                    total += inverse[c, d] * slope[d]
                moved[c] = relax * total + momentum * moved[c]
            far = near = np.float32(0)
            for c in range(r):
                a[c] += moved[c]
                far += a[c] * a[c] * prior[c]
                near += moved[c] * moved[c] * prior[c]
            last = width == one and near <= settled * (far + one)


@compiled
def repeated(rows, least, values):
    """Write the two values that a row holds most often, at least ``least`` times, into ``values``; NaN for none."""
    n, p = rows.shape
    kept = np.empty(p, rows.dtype)
    for i in range(n):
        values[i] = np.nan
        m = 0
        for j in range(p):
            if not np.isnan(rows[i, j]):
                kept[m] = rows[i, j]
                m += 1
        ordered = np.sort(kept[:m])
        first = second = 0
        start = 0
        for j in range(1, m + 1):
            if j == m or ordered[j] != ordered[start]:
                length = j - start
                if length >= least and length > first:
                    second, values[i, 1] = first, values[i, 0]
                    first, values[i, 0] = length, ordered[start]
                elif length >= least and length > second:
                    second, values[i, 1] = length, ordered[start]
                start = j


@compiled
def rates_of_repeats(rows, values, near, weights, X, tol, known, known_rates, rate):
    """Write how often right cells hold the repeated value that each cell holds; -1 where the cell holds none.

    ``near`` and ``weights`` are the training rows near each row, ``known`` values that training rows repeat, and
    ``known_rates`` the share of them in each column.
    """
    n, p = rows.shape
    k = near.shape[1]
    for i in range(n):
        rate[i] = -1
        for number in range(2):
            v = values[i, number]
            if np.isnan(v):
                continue
            place = -1
            for one in range(len(known)):
                if abs(known[one] - v) <= tol:
                    place = one
            for j in range(p):
                if rows[i, j] == v:
                    around = np.float32(0)
                    for c in range(k):
                        if abs(X[near[i, c], j] - v) <= tol:
                            around += weights[i, c]
                    everywhere = known_rates[place, j] if place >= 0 else np.float32(0)
                    rate[i, j] = (k * around + np.float32(2) * everywhere + np.float32(1e-3)) / (k + np.float32(2))
