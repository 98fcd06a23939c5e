"""Low rank on two graphs, with gross errors."""

from benchopt import BaseDataset

from frpcag.data import make_low_rank_on_graphs


class Dataset(BaseDataset):
    name = "simulated"
    parameters = {"n_samples, n_features": [(300, 100), (2000, 400)]}

    def get_data(self):
        X, _, _ = make_low_rank_on_graphs(self.n_samples, self.n_features, random_state=0)
        return {"X": X - X.mean(axis=0)}
