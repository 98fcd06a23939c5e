"""pyunlocbox: its forward-backward solver with FISTA acceleration."""

import numpy as np
from benchopt import BaseSolver
from pyunlocbox import acceleration, functions, solvers


class Solver(BaseSolver):
    name = "pyunlocbox"
    requirements = ["pyunlocbox"]
    sampling_strategy = "iteration"

    def set_objective(self, X, L1, L2, gamma1, gamma2):
        self.X, self.step = X, 1 / (4 * gamma1 + 4 * gamma2)
        self.data = functions.norm_l1(y=X)
        self.smooth = functions.func()
        self.smooth._grad = lambda U: 2 * (gamma1 * (L1 @ U) + gamma2 * (L2 @ U.T).T)
        self.smooth._eval = lambda U: float(np.sum(U * self.smooth._grad(U)) / 2)

    def run(self, n_iter):
        method = solvers.forward_backward(step=self.step, accel=acceleration.fista())
        found = solvers.solve(
            [self.data, self.smooth], x0=self.X.copy(), solver=method, atol=0, dtol=0, rtol=0, xtol=0,
            maxit=max(n_iter, 1), verbosity="NONE",
        )  # fmt: skip
        self.U = found["sol"]

    def get_result(self):
        return {"U": self.U}
