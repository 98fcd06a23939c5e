"""The problem of Shahid et al. 2016, Eq. (1), with the graphs and gammas that frpcag builds."""

from benchopt import BaseObjective

from frpcag import Problem, build_graph, certificate


class Objective(BaseObjective):
    name = "Fast robust PCA on graphs"
    min_benchopt_version = "1.6"
    # Multiples of the scale-free gammas.
    parameters = {"multiple": [0.3, 1.0]}
    requirements = ["frpcag"]

    def set_data(self, X):
        graphs = [build_graph(X, axis=axis) for axis in (0, 1)]
        gammas = [self.multiple * _scale_free(X if axis == 0 else X.T, graphs[axis].laplacian) for axis in (0, 1)]
        self.problem = Problem(X, graphs[0].laplacian, graphs[1].laplacian, *gammas)

    def evaluate_result(self, U):
        proved = certificate(self.problem, U)
        return {"value": proved.objective, "duality_gap": proved.gap}

    def get_one_result(self):
        return {"U": self.problem.X}

    def get_objective(self):
        p = self.problem
        return {"X": p.X, "L1": p.L1, "L2": p.L2, "gamma1": p.gamma1, "gamma2": p.gamma2}


def _scale_free(X, L):
    """Return the gamma at which the typical entry of the gradient at ``X`` is one."""
    return 1 / (2 * abs(L @ X)).mean()
