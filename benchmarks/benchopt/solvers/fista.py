"""The paper's algorithm in NumPy and SciPy: FISTA without restart, spectral norms bounded by 2."""

import numpy as np
from benchopt import BaseSolver


class Solver(BaseSolver):
    name = "fista"
    sampling_strategy = "iteration"

    def set_objective(self, X, L1, L2, gamma1, gamma2):
        self.X, self.L1, self.L2, self.gamma1, self.gamma2 = X, L1, L2, gamma1, gamma2

    def run(self, n_iter):
        X = self.X
        step = 1 / (4 * self.gamma1 + 4 * self.gamma2)
        U = Y = X
        t = 1.0
        for _ in range(n_iter):
            G = 2 * (self.gamma1 * (self.L1 @ Y) + self.gamma2 * (self.L2 @ Y.T).T)
            D = Y - step * G - X
            before, U = U, X + np.sign(D) * np.maximum(np.abs(D) - step, 0)
            t_next = (1 + np.sqrt(1 + 4 * t * t)) / 2
            Y, t = U + (t - 1) / t_next * (U - before), t_next
        self.U = U

    def get_result(self):
        return {"U": self.U}
