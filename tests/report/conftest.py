"""A small fit of images, and a browser to open its report in."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from frpcag import FRPCAG
from frpcag.data import make_low_rank_on_graphs
from frpcag.report import Fit, write_report
from support.browser import Browser


@pytest.fixture(scope="session")
def model():
    """60 images of 6 x 6; image 7 and pixel 31 are bad."""
    X, _, _ = make_low_rank_on_graphs(60, 36, n_sample_clusters=3, outliers=0.01, random_state=0)
    X[7, ::2] += 9
    X[::2, 31] -= 9
    return FRPCAG(feature_shape=(6, 6)).fit(X)


@pytest.fixture(scope="session")
def fit(model):
    return Fit.of_model(model, labels=np.arange(60) % 3, title="images")


@pytest.fixture(scope="session")
def page(fit, tmp_path_factory):
    """The report of that fit, with everything in it; drawn once, as plots take a while."""
    return write_report(tmp_path_factory.mktemp("report") / "report.html", fit)


@pytest.fixture
def bare(model):
    """The same images without what takes long to draw."""
    return Fit(U=model.low_rank_, S=model.sparse_, labels=np.arange(60) % 3, feature_shape=(6, 6))


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    page = Browser(tmp_path_factory.mktemp("profile"))
    yield page
    page.close()


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")
