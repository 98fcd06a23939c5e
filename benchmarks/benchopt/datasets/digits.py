"""The handwritten digits of scikit-learn, a quarter of the pixels black or white."""

import numpy as np
from benchopt import BaseDataset
from reproduction import salt_and_pepper
from sklearn.datasets import load_digits


class Dataset(BaseDataset):
    name = "digits"

    def get_data(self):
        X, _ = salt_and_pepper(load_digits().data.astype(np.float64), 0.25, random_state=0)
        return {"X": X - X.mean(axis=0)}
