"""Tables of figures from the measurements in results/: each takes a record and returns head and rows."""

from pathlib import Path

RESULTS = Path(__file__).resolve().parents[2] / "results"


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
    head = ["data", "total", "sample graph", "feature graph", "solve (steps)", "factors", "gap", "peak, of the formula"]
    rows = [
        [
            f"{row['data']} {row['n']} x {row['p']}",
            f"**{_ms(1e3 * row['seconds'])}**",
            f"{_ms(1e3 * row['times']['sample_graph'])} ({row['graph']})",
            _ms(1e3 * row["times"]["feature_graph"]),
            f"{_ms(1e3 * row['times']['solve'])} ({row['n_iter']})",
            _ms(1e3 * row["times"]["factorize"]),
            f"{row['gap']:.1e}",
            f"{row['peak_bytes'] / 1e9:.2f} GB, {row['peak_over_formula']:.2f}",
        ]
        for row in record["fits"]
    ]
    return head, rows


def gpu_step(record):
    """One solver step on a GPU: in full, and far from the optimum."""
    head = ["data", "step", "floor", "times the floor", "far from the optimum", "certificate", "in PyTorch operations"]
    rows = [
        [
            f"{row['data']} {row['n']} x {row['p']}",
            _ms(row["step_ms"]),
            _ms(row["floor_ms"]),
            f"{row['times_floor']:.2f}",
            f"{_ms(row['coarse_ms'])} ({row['coarse_ms'] / row['floor_ms']:.2f})",
            _ms(row["gap_ms"]),
            _ms(row["tensor_operations_ms"]),
        ]
        for row in record["steps"]
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
    """Time of a new row."""
    head = ["data", "a new row"]
    slowest = {}
    for row in record["rows"]:
        slowest[row["data"]] = max(slowest.get(row["data"], 0.0), row["ms_per_row"])
    return head, [[name, f"at most {ms:.1f} ms"] for name, ms in slowest.items()]


def missing(record):
    """Clustering error against the share of missing pixels."""
    models = list(record["orl"][0]["errors"])
    head = ["ORL, pixels missing", *(f"{row['share']:.0%}" for row in record["orl"])]
    rows = [[name, *(f"{100 * row['errors'][name]:.1f}" for row in record["orl"])] for name in models]
    return head, rows


def compressive(record):
    """Compressive fits: the size of the sample, what it costs, what it loses."""
    head = ["what", "rows", "kept", "decoder", "time", "peak memory", "error", "held-out error"]
    rows = []
    for row in record["rows"]:
        time = f"{row['seconds']:.0f} s" if row["load"] < 2 else f"machine busy; {row['cpu_seconds']:.0f} s of CPU"
        n = row.get("n", 70_000)
        kept = row.get("n_kept") or {"all": n, None: n - 1000}.get(row.get("kept"), row.get("kept"))
        error, heldout = (row.get(name) for name in ("error", "heldout_error"))
        rows.append([
            row["of"].replace("_", " "), f"{n:,}", f"{kept:,}", row.get("decoder", "robust"), time,
            f"{row['peak_MB'] / 1000:.1f} GB", "" if error is None else f"{error:.3f}",
            "" if heldout is None else f"{heldout:.3f}",
        ])  # fmt: skip
    return head, rows


TABLES = {
    table.__name__: table
    for table in (fit, step, memory, gpu, gpu_step, cold_start, transform, missing, compressive)
}
