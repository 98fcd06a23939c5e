"""Small files to fit, and the command line in this process, in an empty working folder."""

import signal

import matplotlib.pyplot as plt
import numpy as np
import pytest

from frpcag.data import make_low_rank_on_graphs
from support.cli import invoke


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    plt.close("all")


@pytest.fixture
def ctrl_c():
    """Send this process the signal of Ctrl-C; heard also where the tests run in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda *_, **__: signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def X():
    return make_low_rank_on_graphs(60, 24, n_sample_clusters=3, n_feature_clusters=3, random_state=0)[0]


@pytest.fixture
def data(working_folder, X):
    path = working_folder / "data.npy"
    np.save(path, X)
    return path


@pytest.fixture
def frpcag():
    """Run the command line; ``frpcag("fit", file)``."""
    return invoke
