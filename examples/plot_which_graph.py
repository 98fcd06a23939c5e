"""
Which graph
===========

You can have each graph searched (``"exact"``, ``"approximate"``), pass it (``"grid"`` for pixels, or any adjacency that
you know), or leave it out (``None``). Here we try some of these on small images with gross errors and compare the
distance to the truth.
"""

import matplotlib.pyplot as plt
import numpy as np
from reproduction import load_dataset, salt_and_pepper
from reproduction.evaluate import relative_error
from sklearn.neighbors import KNeighborsTransformer

from frpcag import FRPCAG, build_graph
from frpcag.insight import neighbor_recall

digits = load_dataset("digits")
clean = digits.X[:1000]
X, hit = salt_and_pepper(clean, 0.25, random_state=0)

# %%
# A sample graph from known links: here, twenty links per digit, all within its class. And a graph from clean images: in
# practice you do not have it, but it shows how much is lost because the graph is built from corrupted data.
rng = np.random.default_rng(0)
own = np.zeros((1000, 1000))
for i in range(1000):
    own[i, rng.choice(np.flatnonzero(digits.y[:1000] == digits.y[i]), 20)] = 1
np.fill_diagonal(own, 0)
known = build_graph(X, method=np.maximum(own, own.T))

settings = {
    "both searched (default)": {},
    "approximate search": {"sample_graph": "approximate", "feature_graph": "approximate"},
    "scikit-learn's search": {"sample_graph": KNeighborsTransformer(n_neighbors=10)},
    "pixels on a grid": {"feature_graph": "grid", "feature_shape": (8, 8)},
    "no feature graph": {"feature_graph": None},
    "no sample graph": {"sample_graph": None},
    "20 links in the class": {"sample_graph": known},
    "from clean images": {"sample_graph": build_graph(clean), "feature_graph": build_graph(clean, axis=1)},
}
distance = {}
for name, options in settings.items():
    model = FRPCAG(random_state=0, **options).fit(X)
    distance[name] = relative_error(model.low_rank_, clean)
    print(f"{name:>24}: {distance[name]:.3f} off the truth")

# %%
# Green: the two graphs that know more than ``X`` does.
figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.barh(list(distance), list(distance.values()), color=["#0072B2"] * 6 + ["#009E73"] * 2)
ax.axvline(relative_error(X, clean), color="0.5", ls=":")
ax.text(relative_error(X, clean), 7.4, "as given", ha="right", va="bottom", fontsize=8, color="0.4")
ax.invert_yaxis()
ax.set_xlabel("distance to the true images")

# %%
# How good is the search? This is the share of the ten nearest neighbours that it finds, judged by the corrupted images
# that it searched, and by the clean images:
graph = build_graph(X, method="approximate", random_state=0)
recall = {
    "approximate search in the corrupted images": neighbor_recall(graph, X, random_state=0),
    "the same, against the neighbours in clean images": neighbor_recall(graph, clean, random_state=0),
}
for name, value in recall.items():
    print(f"{name}: {value:.2f}")

# %%
# The search is as good as an exact one, but the corrupted data mislead it. Use a graph that does not come from the
# corrupted data: the pixel grid, known links, or ``n_refine``, which builds the graphs again from ``U``.
