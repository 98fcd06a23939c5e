"""Tables of figures from the measurements in results/: each takes a record and returns head and rows."""

from pathlib import Path

RESULTS = Path(__file__).resolve().parents[2] / "results"
# Load of a machine of two cores on which another process computes, too.
BUSY = 3


def fit(record):
    """Whole fits of MNIST by stage, beside the straight port."""
    port = {row["n"]: row["total"] for row in record["port"]}
    stages = ("sample_graph", "feature_graph", "solve", "factorize")
    head = [
        "n",
        "sample graph",
        "feature graph",
        "solve (steps)",
        "factors",
        "total",
        "straight port",
        "peak / bytes of X",
    ]
    rows = []
    for row in record["ours"]:
        graph1, graph2, solve, factors = (row["times"][stage] for stage in stages)
        rows.append(
            [
                f"{row['n']} x 784",
                f"{graph1:.1f} s ({row['graph']})",
                f"{graph2:.1f} s",
                f"{solve:.1f} s ({row['n_iter']})",
                f"{factors:.1f} s",
                f"**{row['total']:.1f} s**",
                f"{port[row['n']]:.0f} s" if row["n"] in port else "-",
                # The smallest fits leave no mark: loading the data took more.
                f"{row['fit_over_X']:.1f}" if row["fit_over_X"] > 1.01 else "-",
            ]
        )
    return head, rows


def step(record):
    """One solver step against the naive one and the memory floor."""
    head = ["data, longer side in rows", "links a row", "naive", "fused", "floor", "times the floor", "certificate"]
    rows = [
        [
            f"{row['data']} {row['n']} x {row['p']}",
            f"{row['neighbours']:.1f} + {row['feature_neighbours']:.1f}",
            *(_ms(row[key]) for key in ("naive_ms", "fused_ms", "floor_ms")),
            f"{row['times_floor']:.2f}",
            _ms(row["gap_ms"]),
        ]
        for row in record["rows"]
    ]
    return head, rows


def _ms(value):
    return f"{value:.0f} ms" if value >= 100 else f"{value:.3g} ms"


def memory(record):
    """Peak memory of a fit, without X, beside what the guard predicts."""
    head = ["fit", "shape", "type", "X", "predicted", "measured peak", "predicted / measured"]
    rows = [
        [
            row["name"],
            f"{row['n']} x {row['p']}",
            row["dtype"],
            *(f"{row[key]:.0f} MB" for key in ("X_MB", "predicted_MB", "peak_MB")),
            f"{row['predicted_MB'] / row['peak_MB']:.2f}",
        ]
        for row in record["rows"]
    ]
    return head, rows


def gpu(record):
    """Whole fits on a GPU."""
    head = ["data", "total", "sample graph", "solve (steps)", "peak memory"]
    rows = [
        [
            f"{row['data']} {row['n']} x {row['p']}",
            f"**{row['seconds']:.2f} s**",
            f"{row['times']['sample_graph']:.2f} s",
            f"{row['times']['solve']:.2f} s ({row['n_iter']})",
            f"{row['peak_bytes'] / 1e9:.2f} GB",
        ]
        for row in record["fits"]
    ]
    return head, rows


def cold_start(record):
    """The first fit of 300 small images, and the second."""
    head = ["process", "import", "first fit", "second fit"]
    rows = [
        [name, *(f"{record[name][key]:.2f} s" for key in ("import", "first", "second"))]
        for name in ("first ever", "new process, warm cache")
    ]
    return head, rows


def transform(record):
    """Time of a new row, in a batch of 1000 and alone."""
    head = ["data", "first call", "transform, a row of a batch", "alone", "denoise, a row of a batch", "alone"]
    rows = [
        [
            f"{row['data'].upper()}, {row['features']} features, {row['training rows']} training rows",
            f"{row['first call, s']:.1f} s",
            *(f"{row[name]:.2f} ms" for name in ("transform", "transform alone", "denoise", "denoise alone")),
        ]
        for row in record["times"]["now"]
    ]
    return head, rows


def missing(record):
    """Clustering error against the share of missing pixels."""
    models = list(record["orl"][0]["errors"])
    head = ["ORL, pixels missing", *(f"{row['share']:.0%}" for row in record["orl"])]
    rows = [[name, *(f"{100 * row['errors'][name]:.1f}" for row in record["orl"])] for name in models]
    return head, rows


def compressive(record):
    """Compressive fits: the size of the sample, what it costs, what it loses; seeds of one cell are one row."""
    head = ["what", "rows", "kept", "time", "peak memory", "error", "held-out error"]
    cells = {}
    for row in record["rows"]:
        if row.get("decoder") == "harmonic":  # given up
            continue
        n = row.get("n", 70_000)
        kept = row.get("n_kept") or {"all": n, None: n - 1000}.get(row.get("kept"), row.get("kept"))
        cells.setdefault((row["of"].replace("_", " "), n, kept), []).append(row)
    rows = []
    for (of, n, kept), same in cells.items():
        busy = max(row["load"] for row in same) > BUSY
        time = _span(same, "cpu_seconds" if busy else "seconds", ".0f")
        rows.append([
            of, f"{n:,}", f"{kept:,}", f"machine busy; {time} s of CPU" if busy else f"{time} s",
            f"{max(row['peak_MB'] for row in same) / 1000:.1f} GB", _span(same, "error", ".3f"),
            _span(same, "heldout_error", ".3f"),
        ])  # fmt: skip
    return head, rows


def _span(rows, name, digits):
    """Return the least and the largest of some figures, one where they look the same."""
    values = sorted(row[name] for row in rows if row.get(name) is not None)
    return " to ".join(dict.fromkeys(f"{value:{digits}}" for value in (values[:1] + values[-1:])))


def gpu_steps(record):
    """One solver step on a GPU against the memory floor."""
    head = ["one solver step", "time", "floor", "against the floor", "far from the optimum", "certificate"]
    head += ["the same in PyTorch operations"]
    rows = [
        [
            f"{_gpu_data(row)} {row['n']} x {row['p']}",
            f"{row['step_ms']:.2f} ms",
            f"{row['floor_ms']:.2f} ms",
            f"{row['times_floor']:.2f}",
            f"{row['coarse_ms']:.2f} ms, {row['coarse_ms'] / row['floor_ms']:.2f}",
            f"{row['gap_ms']:.2f} ms",
            f"{row['tensor_operations_ms']:.1f} ms",
        ]
        for row in record["steps"]
    ]
    return head, rows


def gpu_fits(record):
    """Whole fits on a GPU by stage, in milliseconds."""
    stages = ("sample_graph", "feature_graph", "solve", "factorize")
    head = ["data", "total", "sample graph", "feature graph", "solve (steps)", "factors", "gap"]
    head += ["peak memory, of the formula"]
    rows = []
    for row in record["fits"]:
        graph1, graph2, solve, factors = (f"{1000 * row['times'][stage]:.0f}" for stage in stages)
        rows.append(
            [
                f"{_gpu_data(row)} {row['n']} x {row['p']}",
                f"**{1000 * row['seconds']:.0f}**",
                f"{graph1} ({row['graph']})",
                graph2,
                f"{solve} ({row['n_iter']})",
                factors,
                f"{row['gap']:.1e}",
                f"{row['peak_bytes'] / 1e9:.2f} GB, {row['peak_over_formula']:.2f}",
            ]
        )
    return head, rows


def gpu_compared(record):
    """Seconds of the stages elsewhere: our CPU backend on the GPU's machine, and the paper's one core."""
    head = ["for comparison", "sample graph", "feature graph", "solve"]
    cpu = record["cpu"]
    times = [f"{cpu['times'][stage]:.2f} s" for stage in ("sample_graph", "feature_graph", "solve")]
    rows = [[f"MNIST {cpu['n']} x 784, our CPU backend on the {cpu['cores']} cores of the same machine", *times]]
    for name, seconds in record["paper_seconds"].items():
        name = name.replace("mnist", "MNIST")
        rows.append([f"{name}, Shahid et al. 2016, one core, to its own stop", *(f"{s:g} s" for s in seconds)])
    return head, rows


def _gpu_data(row):
    return {"mnist": "MNIST", "patches": "8 x 8 patches of a video"}[row["data"]]


def alignment(record):
    """The alignment s_r of USPS by Laplacian and rule of the weights."""
    names = list(record["alignment"][0]["s_r"])
    rows = [
        [f"{row['laplacian']}, {row['weights']}", *(f"{row['s_r'][name]:.3f}" for name in names)]
        for row in record["alignment"]
    ]
    return ["Laplacian, weights", *names], rows


TABLES = {table.__name__: table for table in (fit, step, memory, gpu, cold_start, transform, missing, compressive)}
# Further tables of a record, by its name and their own.
TABLES |= {"gpu:steps": gpu_steps, "gpu:fits": gpu_fits, "gpu:compared": gpu_compared}
TABLES["diagnostics:alignment"] = alignment
