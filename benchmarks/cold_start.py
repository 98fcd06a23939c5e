"""The first call: never compiled before, first in a new process with a warm cache, and again in that process.

``python benchmarks/cold_start.py`` writes results/cold_start.json.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

CHILD = """
import json, time
start = time.perf_counter()
import numpy as np
from frpcag import FRPCAG
imported = time.perf_counter()
X = np.random.default_rng(0).normal(size=(1500, 256)).astype(np.float32)
laps = []
for _ in range(3):
    lap = time.perf_counter()
    FRPCAG(random_state=0).fit(X)
    laps.append(time.perf_counter() - lap)
print(json.dumps({"import": imported - start, "first": laps[0], "second": laps[1], "third": laps[2]}))
"""


def run(cache: str) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


if __name__ == "__main__":
    from machine import write_result

    with tempfile.TemporaryDirectory() as cache:
        record = {"first ever": run(cache), "new process, warm cache": run(cache)}
    for name, row in record.items():
        over = row["first"] - min(row["second"], row["third"])
        print(f"{name:24s} import {row['import']:.2f} s  first fit {row['first']:.2f} s  second {row['second']:.2f} s  "
              f"overhead of the first {over:.2f} s")  # fmt: skip
    write_result("cold_start", record)
