"""The problem once more, in extended precision and by differences along edges: what certificates are judged by.

Nothing of the library is used here. A term is a list of edges ``w (u_i / s_i - u_k / s_k)^2`` and an excess
``e_i u_i^2``; the optimum comes from an interior-point method whose linear systems are factorised in
``numpy.longdouble``. Made for matrices of some hundred entries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray
Real = np.longdouble


@dataclass(frozen=True)
class Term:
    """One graph term: edges (each once) with their weights, the null vector, and what the diagonal has beyond it."""

    i: Array
    k: Array
    w: Array
    s: Array
    excess: Array

    @classmethod
    def of(cls, weights: Array, kind: str, excess: Array | float = 0.0) -> Term:
        """Return the term of a dense symmetric matrix of weights; isolated nodes have a null vector of one."""
        W = np.asarray(weights, dtype=Real)
        i, k = np.nonzero(np.triu(W, 1))
        degree = W.sum(axis=1)
        s = np.ones(len(W), dtype=Real)
        if kind == "normalized":
            s = np.sqrt(np.where(degree > 0, degree, 1))
        return cls(i, k, W[i, k], s, np.broadcast_to(np.asarray(excess, dtype=Real), len(W)))

    def energy(self, U: Array) -> Real:
        """Return ``tr(U' L U)`` for nodes in rows."""
        Z = U / self.s[:, None]
        D = Z[self.i] - Z[self.k]
        return (self.w[:, None] * D * D).sum() + (self.excess[:, None] * U * U).sum()

    def product(self, U: Array) -> Array:
        """Return ``L U`` for nodes in rows."""
        Z = U / self.s[:, None]
        flow = self.w[:, None] * (Z[self.i] - Z[self.k])
        out = np.zeros_like(U)
        np.add.at(out, self.i, flow)
        np.subtract.at(out, self.k, flow)
        return out / self.s[:, None] + self.excess[:, None] * U

    def dense(self) -> Array:
        """Return ``L``."""
        return self.product(np.eye(len(self.s), dtype=Real))


@dataclass(frozen=True)
class Exact:
    """A problem in extended precision; NaN in ``X`` is missing."""

    X: Array
    terms: tuple[Term | None, Term | None]
    gammas: tuple[float, float]
    loss: str
    delta: float

    def value(self, U: Array) -> Real:
        """Return the objective."""
        return self._data(U) + self._smooth(U)

    def added_up(self, U: Array) -> Real:
        """Return the sizes of all that the objective at ``U`` adds up: its rounding is a share of this."""
        return self._data(U) + self.level_added(U, np.nan_to_num(np.abs(self.X), nan=0.0) + np.abs(U))

    def level_added(self, U: Array, level: Array) -> Real:
        """Return how much of a level of the data and ``U`` the objective adds up and takes off again."""
        slope = 2 * np.abs(self._residual(U)) if self.loss == "l2" else 1
        reach1, reach2 = (
            np.zeros(m) if t is None else Real(g) * abs(t.dense()).sum(axis=1)
            for g, t, m in zip(self.gammas, self.terms, U.shape, strict=True)
        )
        level = np.broadcast_to(np.maximum(level, np.abs(self._level())), U.shape)
        return (slope * level).sum() + ((reach1[:, None] + reach2) * level * level).sum()

    def relative_gap(self, U: Array) -> tuple[Real, Real]:
        """Return how far the objective at ``U`` lies above the optimum, relative to it, at least and at most."""
        at = self.value(U)
        if at == 0:
            return Real(0), Real(0)
        best, open_ = self.optimum(U)
        return (at - best) / at, (at - best + open_) / at

    def optimum(self, also: Array) -> tuple[Real, Real]:
        """Return the smallest objective found and how far at most the optimum lies below it; ``also`` is tried, too."""
        shift = self._level()
        moved = Exact(self.X - shift, self.terms, self.gammas, self.loss, self.delta)
        found = [also - shift, *moved._candidates()]
        values = [moved.value(U) for U in found]
        best = int(np.argmin(values))
        slack = min(moved._slack(U) for U in found)  # each: its objective minus a bound of the optimum
        return values[best], max(slack, Real(0))

    # The parts of the objective.

    def _residual(self, U: Array) -> Array:
        return np.nan_to_num(self.X - U, nan=0.0)

    def _data(self, U: Array) -> Real:
        R = np.abs(self._residual(U))
        if self.loss == "l2":
            return (R * R).sum()
        d = Real(self.delta)
        return np.where(d < R, R - d / 2, R * R / (2 * d)).sum() if self.loss == "huber" else R.sum()

    def _smooth(self, U: Array) -> Real:
        return sum(
            (Real(g) * t.energy(A) for g, t, A in zip(self.gammas, self.terms, (U, U.T), strict=True) if t is not None),
            Real(0),
        )

    def _gradient(self, U: Array) -> Array:
        first, second = self.terms
        V = np.zeros_like(U)
        if first is not None:
            V = V + 2 * Real(self.gammas[0]) * first.product(U)
        return V if second is None else V + 2 * Real(self.gammas[1]) * second.product(U.T).T

    def _level(self) -> Array:
        """Return a level that no term sees: of all entries, of each column, or of each row."""
        pulls = [t is not None and g > 0 for t, g in zip(self.terms, self.gammas, strict=True)]
        plain = [not pull or (t.excess == 0).all() for pull, t in zip(pulls, self.terms, strict=True)]
        s, t = (
            term.s if pull else np.ones(size, dtype=Real)
            for pull, term, size in zip(pulls, self.terms, self.X.shape, strict=True)
        )
        Z = self.X / s[:, None] / t
        if not all(plain) or not any(pulls):
            return np.zeros_like(self.X)
        with np.errstate(all="ignore"):
            if all(pulls):
                level = np.nanmedian(Z)
            else:
                axis = 0 if pulls[0] else 1
                empty = np.isnan(Z).all(axis=axis, keepdims=True)
                level = np.nanmedian(np.where(empty, 0, Z), axis=axis, keepdims=True)
        return np.broadcast_to(level, self.X.shape) * s[:, None] * t

    def _slack(self, U: Array) -> Real:
        """Return a bound on how far ``U`` is from optimal, by duality; infinite with missing entries that pull."""
        V, R, seen = self._gradient(U), self._residual(U), ~np.isnan(self.X)
        unseen = np.abs(V[~seen]).sum()
        Z = self.X if self.X.size else R
        reach = np.nanmax(Z) - np.nanmin(Z)
        curvature = {"l1": 0.0, "l2": 0.25, "huber": self.delta / 2}[self.loss]
        V = V[seen]
        top = np.abs(V).max(initial=Real(0))
        a = Real(1) if self.loss == "l2" or top <= 1 else 1 / top
        lost = a * unseen * reach * 4  # the solution's range; generous, as null vectors may stretch it
        return (
            self._data(U) - a * (V * R[seen]).sum() + Real(curvature) * a * a * (V * V).sum()
            + (1 - a) ** 2 * self._smooth(U) + lost
        )  # fmt: skip

    # Points that may be optimal.

    def _candidates(self) -> list[Array]:
        middle = np.nanmedian(self.X)
        start = np.where(np.isnan(self.X), middle, self.X)
        found = [start, np.zeros_like(start)]
        return [*found, self._least_squares() if self.loss == "l2" else self._interior_point()]

    def _hessian(self) -> Array:
        n, p = self.X.shape
        first, second = (
            np.zeros((size, size), dtype=Real) if t is None else 2 * Real(g) * t.dense()
            for g, t, size in zip(self.gammas, self.terms, (n, p), strict=True)
        )
        return np.kron(first, np.eye(p, dtype=Real)) + np.kron(np.eye(n, dtype=Real), second)

    def _least_squares(self) -> Array:
        seen = ~np.isnan(self.X).ravel()
        A = self._hessian()
        A[np.diag_indices_from(A)] += np.where(seen, Real(2), _tiny(A))
        b = 2 * np.nan_to_num(self.X, nan=0.0).ravel()
        u = solve(A, b)
        for _ in range(3):  # refined: the residual is exact where the system is not
            U = u.reshape(self.X.shape)
            u = u + solve(A, (2 * self._residual(U) - self._gradient(U)).ravel())
        return u.reshape(self.X.shape)

    def _interior_point(self, *, steps: int = 60) -> Array:
        """Return the solution for l1 and Huber.

        It solves ``M u = z``, ``x - u = delta z + p - q``, ``p (1 - z) = q (1 + z) = m``, with ``M`` the Hessian of the
        graph terms, and ``m`` goes to zero.
        """
        seen = ~np.isnan(self.X).ravel()
        x = np.nan_to_num(self.X, nan=0.0).ravel()[seen]
        size = np.abs(x).max(initial=Real(0))
        if size == 0:
            return np.zeros_like(self.X)
        delta = Real(self.delta) if self.loss == "huber" else Real(0)
        M = self._hessian()
        u, z = np.zeros(len(seen), dtype=Real), np.zeros(len(x), dtype=Real)
        p = q = np.full(len(x), size)
        best, least = u, np.inf
        for _ in range(steps):
            up, down = 1 - z, 1 + z
            gap = (p * up + q * down).sum()
            m = gap / (2 * len(x)) * Real(0.1 if _ % 3 else 0.01)
            off = x - u[seen] - delta * z - p + q
            E = delta + p / up + q / down
            right = off - (m - p * up) / up + (m - q * down) / down
            g = -(M @ u)
            g[seen] += z + right / E
            A = M.copy()
            extra = np.full(len(seen), _tiny(M))
            extra[seen] += 1 / E
            A[np.diag_indices_from(A)] += extra
            du = solve(A, g)
            dz = (right - du[seen]) / E
            dp, dq = (m - p * up + p * dz) / up, (m - q * down - q * dz) / down
            length = min(_room(v, dv) for v, dv in ((p, dp), (q, dq), (up, -dz), (down, dz)))
            u, z, p, q = u + length * du, z + length * dz, p + length * dp, q + length * dq
            if not np.isfinite(u).all():
                break
            for U in (u.reshape(self.X.shape), self._snapped(u, size)):
                if (value := self.value(U)) < least:
                    best, least = U.ravel(), value
            if gap <= Real(1e-16) * least:
                break
        return best.reshape(self.X.shape)

    def _snapped(self, u: Array, size: Real) -> Array:
        """Return the point with entries that are all but their datum put onto it."""
        U = u.reshape(self.X.shape)
        return np.where(np.abs(self._residual(U)) <= Real(1e-12) * size, np.where(np.isnan(self.X), U, self.X), U)


def _tiny(A: Array) -> Real:
    """Return what keeps a singular system solvable and moves nothing."""
    return Real(1e-30) * max(np.abs(A).max(initial=Real(0)), Real(1e-300))


def _room(v: Array, dv: Array) -> Real:
    shrinks = dv < 0
    return min(Real(1), Real(0.995) * (-v[shrinks] / dv[shrinks]).min()) if shrinks.any() else Real(1)


def solve(A: Array, b: Array) -> Array:
    """Solve a symmetric positive definite system in extended precision."""
    A, b = A.copy(), b.copy()
    n = len(b)
    for k in range(n):
        pivot = A[k, k]
        if not pivot > 0:
            A[k, k] = pivot = Real(1e300)  # a direction that nothing holds: do not move along it
        column = A[k + 1 :, k] / pivot
        rows = np.flatnonzero(column)
        if len(rows):
            rows += k + 1
            part = column[rows - k - 1]
            A[np.ix_(rows, rows)] -= part[:, None] * A[k, rows]
            b[rows] -= part * b[k]
        A[k + 1 :, k] = column
    for k in range(n - 1, -1, -1):
        b[k] = (b[k] - A[k, k + 1 :] @ b[k + 1 :]) / A[k, k]
    return b
