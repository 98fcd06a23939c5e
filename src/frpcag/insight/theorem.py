"""Both sides of Theorem 1 of Shahid et al. 2016, computed on your data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frpcag.insight.spectra import graph_basis, project_low_rank
from frpcag.problem import Problem, certificate, data_term

Array = np.ndarray


@dataclass(frozen=True)
class Bound:
    """Both sides of Theorem 1 (Shahid et al. 2016, Eq. (8)), and their terms.

    Parameters
    ----------
    loss_U, loss_E : float
        ``phi(U - X)`` and ``phi(E)``, ``E = X - X*``.
    outside_samples, outside_features : float
        Energy of ``U`` outside the first ``k1`` eigenvectors of the sample graph and the first ``k2`` of the feature
        graph, ``|Qbar' U|^2`` and ``|U Pbar|^2``.
    clean_energy : float
        ``|X*|^2``.
    weights_out, weights_in : tuple of float
        ``(gamma1 lambda_{k1+1}, gamma2 omega_{k2+1})`` and ``(gamma1 lambda_k1, gamma2 omega_k2)``.
    slack : float
        How far ``U`` may be from the minimum of the objective, by its certificate.
    """

    loss_U: float
    loss_E: float
    outside_samples: float
    outside_features: float
    clean_energy: float
    weights_out: tuple[float, float]
    weights_in: tuple[float, float]
    slack: float

    @property
    def left(self) -> float:
        """``phi(U - X) + gamma (|Qbar' U|^2 + |U Pbar|^2)`` for the theorem's gammas."""
        return self.loss_U + self.weights_out[0] * self.outside_samples + self.weights_out[1] * self.outside_features

    @property
    def right(self) -> float:
        """``phi(E) + gamma |X*|^2 (lambda_k1 / lambda_{k1+1} + omega_k2 / omega_{k2+1})``."""
        return self.loss_E + sum(self.weights_in) * self.clean_energy

    @property
    def holds(self) -> bool:
        """Whether left <= right, allowing for rounding and for the distance of ``U`` from the optimum."""
        return self.left <= self.right + self.slack + 1e-9 * (self.left + self.right)


def theorem_bound(problem: Problem, U: Array, *, k1: int, k2: int, clean: Array | None = None) -> Bound:
    """Evaluate both sides of Theorem 1 at a solution ``U``.

    Parameters
    ----------
    problem : Problem
        With both graphs and no missing entries. Any loss and any gammas are allowed, see Notes.
    U : ndarray of shape (n_samples, n_features)
        Its solution.
    k1, k2 : int
        Clusters of samples and of features, each less than the number of nodes.
    clean : ndarray of shape (n_samples, n_features), optional
        The theorem's ``X*``. The part of it that is not low-rank on the graphs counts as part of ``E``. The default is
        the projection of ``X``: the theorem holds for every matrix that is low-rank on the graphs.

    Returns
    -------
    Bound

    Notes
    -----
    The proof gives, for any gammas,
    ``phi(U - X) + gamma1 lambda_{k1+1} |Qbar' U|^2 + gamma2 omega_{k2+1} |U Pbar|^2
    <= phi(E) + (gamma1 lambda_k1 + gamma2 omega_k2) |X*|^2``;
    with the theorem's gammas, ``gamma / lambda_{k1+1}`` and ``gamma / omega_{k2+1}``, both weights on the left are
    ``gamma``. The statement of the theorem prints ``gamma1`` and ``gamma2`` in their place, which is more than the
    proof shows if an eigenvalue is below 1. This function evaluates what is proved. The paper's ``lambda_k`` is the
    k-th smallest eigenvalue, counted from 1.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag import Problem, build_graph, solve
    >>> from frpcag.data import make_low_rank_on_graphs
    >>> from frpcag.insight import theorem_bound
    >>> X, clean, _ = make_low_rank_on_graphs(40, 30, random_state=0)
    >>> L1, L2 = (build_graph(clean, axis=axis, n_neighbors=5).laplacian for axis in (0, 1))
    >>> problem = Problem(X, L1, L2, 1.0, 1.0)
    >>> theorem_bound(problem, solve(problem).U, k1=4, k2=4, clean=clean).holds
    True
    """
    if problem.L1 is None or problem.L2 is None or problem.mask is not None:
        raise ValueError("problem must have both graphs and no missing entries; fill them in or drop them first.")
    lam, Q = graph_basis(problem.L1, _check_k("k1", k1, problem.L1.shape[0]) + 1)
    omega, P = graph_basis(problem.L2, _check_k("k2", k2, problem.L2.shape[0]) + 1)
    Q, P = Q[:, :k1], P[:, :k2]
    X_star = project_low_rank(problem.X if clean is None else clean, Q, P)
    at_U = certificate(problem, U)
    energy = _energy(U)
    return Bound(
        loss_U=data_term(problem, U),
        loss_E=data_term(problem, X_star),
        outside_samples=max(energy - _energy(Q.T @ U), 0.0),
        outside_features=max(energy - _energy(U @ P), 0.0),
        clean_energy=_energy(X_star),
        weights_out=(float(problem.gamma1 * lam[k1]), float(problem.gamma2 * omega[k2])),
        weights_in=(float(problem.gamma1 * lam[k1 - 1]), float(problem.gamma2 * omega[k2 - 1])),
        slack=max(at_U.objective - at_U.bound, 0.0),
    )


def _check_k(name: str, k: int, n_nodes: int) -> int:
    if not 1 <= k < n_nodes:
        raise ValueError(f"{name}={k} must lie between 1 and {n_nodes - 1}, one less than the graph has nodes.")
    return k


def _energy(A: Array) -> float:
    return float(np.einsum("ij,ij->", A, A, dtype=np.float64))
