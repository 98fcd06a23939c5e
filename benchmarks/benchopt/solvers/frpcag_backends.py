"""frpcag: FISTA with restart, step from a Lanczos bound, on its backends."""

import warnings

from benchopt import BaseSolver

from frpcag import Problem, solve


class Solver(BaseSolver):
    name = "frpcag"
    parameters = {"backend": ["numba", "numpy"]}
    requirements = ["frpcag"]
    sampling_strategy = "iteration"

    def set_objective(self, X, L1, L2, gamma1, gamma2):
        self.problem = Problem(X, L1, L2, gamma1, gamma2)
        self.run(1)  # compiles

    def run(self, n_iter):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of course it stops early
            self.U = solve(self.problem, tol=0.0, max_iter=max(n_iter, 1), backend=self.backend).U

    def get_result(self):
        return {"U": self.U}
