"""A table of sensors with stuck and missing values, from the raw file to a clean one and a picture.

python docs/stories/sensors.py            # makes sensors.csv first
python docs/stories/sensors.py mine.csv   # your own table: semicolons, decimal commas, ? for missing

Writes clean.csv and sensors.png into the working folder.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from frpcag import RobustGraphCleaner
from frpcag.tables import read_table


def make(path):
    """Write a table as a logger does: an id, a date, decimal commas, gaps, a sensor that stood still for a while."""
    rng = np.random.default_rng(0)
    t = np.arange(240)
    readings = 20 + np.sin(t[:, None] / 15 + np.arange(6)) + 0.05 * rng.normal(size=(240, 6))
    readings[100:140, 2] = readings[100, 2]  # stuck
    with open(path, "w") as file:
        file.write("id;date;" + ";".join(f"sensor {j}" for j in range(6)) + "\n")
        for i, row in enumerate(readings):
            cells = ["?" if rng.random() < 0.05 else f"{x:.3f}".replace(".", ",") for x in row]
            file.write(f"{1000 + i};2024-05-{i % 28 + 1:02d};{';'.join(cells)}\n")


def main():
    """Clean the table and draw the sensor that stands out most."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "sensors.csv")
    if len(sys.argv) == 1:
        make(path)
    table = read_table(path, missing="?", decimal=",")
    cleaner = RobustGraphCleaner(random_state=0).fit(table.X)
    table.write("clean.csv", cleaner.cleaned_)

    worst = int(cleaner.outliers_.sum(axis=0).argmax())
    given, clean, wrong = table.X[:, worst], cleaner.cleaned_[:, worst], cleaner.outliers_[:, worst]
    gaps = np.isnan(given)
    figure, ax = plt.subplots(figsize=(7.2, 2.6), layout="constrained")
    ax.plot(given, color="#8C8C8C", lw=1.4, label="as given")
    for at, color, word in ((wrong, "#D55E00", "found wrong, repaired"), (gaps, "#0072B2", "missing, filled in")):
        ax.plot(np.flatnonzero(at), clean[at], "o", ms=3.5, color=color, label=word)
    ax.set(xlabel="row", ylabel=table.names[worst], xlim=(0, len(given) - 1))
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, ncol=3, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0)
    figure.savefig("sensors.png", dpi=130, metadata={"Software": None})
    print(f"{cleaner.outliers_.sum()} cells found wrong, {wrong.sum()} of them in {table.names[worst]}; see clean.csv")


if __name__ == "__main__":
    main()
