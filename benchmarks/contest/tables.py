"""Records of the comparison with peers to tables and figures; wins and losses are counted, not told."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from reproduction.paper.figures import NONE, markdown_table, new_figure, save
from reproduction.paper.run import read_records

from contest.measure import OK, OVER
from contest.tasks import TASKS, Task
from frpcag.runtime.atomic import atomic_file

# One colour and marker for each contender in every figure; those of one family never share a task.
NUMBERS = {
    name: number
    for number, names in enumerate(
        (
            ("FRPCAG", "FRPCAGClustering", "RobustGraphImputer", "frpcag, Numba"),
            ("PCA", "PCA + k-means"),
            ("TensorLy robust_pca", "KNNImputer", "pyunlocbox"),
            ("UMAP", "UMAP + k-means", "IterativeImputer", "RPCA, our ALM"),
            ("FRPCAG, combinatorial", "frpcag, NumPy"),
            ("IncrementalPCA", "k-means"),
            ("as given", "mean", "SpectralClustering"),
            ("median",),
        )
    )
    for name in names
}
SUMMARY = "summary"


def bold(text: str) -> str:
    """Mark the best in Markdown."""
    return f"**{text}**"


def setting_of(cell: dict) -> str:
    """Return what a cell was measured on, in words: the data and what was done to them.

    Examples
    --------
    >>> from contest.tables import setting_of
    >>> setting_of({"task": "missing", "data": "orl", "corruption": "nan30", "model": "mean"})
    'orl, nan30'
    """
    more = {key: value for key, value in cell.items() if key not in ("task", "data", "model")}
    return ", ".join(
        [cell["data"], *(f"{value}" if key == "corruption" else f"{key} {value}" for key, value in more.items())]
    )


def by_setting(task: Task, records: list[dict]) -> dict[str, dict[str, dict]]:
    """Return the records of a task by setting and contender, contenders in the order of the task."""
    found: dict[str, dict[str, dict]] = {}
    for record in records:
        if record["cell"]["task"] == task.name:
            found.setdefault(setting_of(record["cell"]), {})[record["cell"]["model"]] = record
    order = [setting_of(cell) for quick in (False, True) for cell in task.cells(quick)]
    keys = sorted(found, key=lambda name: order.index(name) if name in order else len(order))
    return {key: {model: found[key][model] for model in task.contenders if model in found[key]} for key in keys}


def seconds_of(record: dict | None) -> float | None:
    """Return the seconds of a run that ended."""
    return record["times"]["run"] if record and record.get("status") == OK else None


def score_of(task: Task, record: dict | None, number: int = 0) -> float | None:
    """Return a score of a run that ended; None where the task has none."""
    if not record or record.get("status") != OK or number >= len(task.scores):
        return None
    return record["scores"].get(list(task.scores)[number])


def table(task: Task, records: list[dict], mark: Callable[[str], str] = bold) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of the table of a task; the best score and the shortest time of a setting are marked.

    ``ratio`` is the time over that of our contender, ``MB`` the peak of memory during the run, beyond the data.
    """
    head = ["data", "contender", *task.scores.values(), task.seconds, "ratio", "MB"]
    rows = []
    for setting, found in by_setting(task, records).items():
        ours = seconds_of(found.get(task.ours))
        scored = bool(task.scores) and not task.certified
        least_score = _least(score_of(task, one) for one in found.values())
        least_seconds = _least(seconds_of(one) for model, one in found.items() if not task.contenders[model].reference)
        for model, record in found.items():
            seconds, scores = seconds_of(record), [score_of(task, record, i) for i in range(len(task.scores))]
            words = [_short(score) for score in scores]
            if scored and scores[0] is not None and scores[0] == least_score:
                words[0] = mark(words[0])
            time = _time(seconds) if seconds is not None else _ending(record)
            rows.append(
                [
                    setting,
                    model,
                    *words,
                    mark(time) if seconds is not None and seconds == least_seconds else time,
                    f"{seconds / ours:.2g}" if seconds is not None and ours else NONE,
                    f"{record['memory'] / 1e6:.0f}" if record.get("memory") is not None else NONE,
                ]
            )
    return head, rows


def summary(records: list[dict]) -> str:
    """Return, for each task, how often we come first, and who is ahead of us how often, in error and in time."""
    rows = []
    for task in TASKS.values():
        groups = [found for found in by_setting(task, records).values() if seconds_of(found.get(task.ours)) is not None]
        if not groups:
            continue
        scored = bool(task.scores) and not task.certified
        row = [task.name, str(len(groups))]
        row += _first_and_ahead(groups, task.ours, partial(score_of, task)) if scored else [NONE, NONE]
        working = [
            {name: one for name, one in found.items() if not task.contenders[name].reference} for found in groups
        ]
        row += _first_and_ahead(working, task.ours, seconds_of)
        rows.append(row)
    head = [
        "task",
        "settings",
        "our default is best in",
        "smaller errors",
        "fastest in",
        "faster",
    ]
    return markdown_table(head, rows)


def _first_and_ahead(groups: list[dict], ours: str, of: Callable[[dict | None], float | None]) -> list[str]:
    """Return in how many groups our number is the smallest, and the contenders with a smaller one, with counts."""
    ahead: dict[str, int] = {}
    first = 0
    for found in groups:
        mine = of(found[ours])
        assert mine is not None
        better = [model for model, one in found.items() if (value := of(one)) is not None and value < mine]
        first += not better
        for model in better:
            ahead[model] = ahead.get(model, 0) + 1
    words = [f"{model} {count}" for model, count in sorted(ahead.items(), key=lambda item: -item[1])]
    return [str(first), ", ".join(words) or NONE]


def render_peers(folder: Path, names: list[str] | None = None) -> dict[str, str]:
    """Draw the figures of the records in a folder; return Markdown for each task, and the summary.

    Parameters
    ----------
    folder : Path
        Of the records; figures and tables land there.
    names : list of str, optional
        Tasks; all of them by default.
    """
    records = list(read_records(folder).values())
    tables = {}
    for name in names or TASKS:
        task = TASKS[name]
        head, rows = table(task, records)
        if not rows:
            continue
        figure = f"\n![{task.title}]({folder.name}/{name}.png)\n"
        tables[name] = f"{task.note}\n\n{markdown_table(head, rows)}{figure}"
        with atomic_file(folder / f"{name}.md") as file:
            file.write_text(f"{task.title}\n\n{task.note}\n\n{markdown_table(head, rows)}")
        (_draw_growth if task.grows else _draw_task)(task, by_setting(task, records), folder)
    if tables:
        tables[SUMMARY] = summary(records)
    return tables


def _draw_task(task: Task, settings: dict[str, dict[str, dict]], folder: Path) -> None:
    from contest.plots import plot_score_against_time

    columns = min(len(settings), 3)
    figure, axes = new_figure(-(-len(settings) // columns), columns, width=4, height=2.8)
    for ax in axes.flat[len(settings) :]:
        ax.axis("off")
    for ax, (setting, found) in zip(axes.flat, settings.items(), strict=False):
        if task.certified:
            _draw_way(found, ax)
        else:
            ended = {model: one for model, one in found.items() if seconds_of(one) is not None}
            plot_score_against_time(
                [seconds_of(one) for one in ended.values()],
                [score_of(task, one) for one in ended.values()],
                list(ended),
                numbers=[NUMBERS.get(model, len(NUMBERS)) for model in ended],
                ylabel="error",
                ax=ax,
            )
        missing = [f"{model}: {_ending(one)}" for model, one in found.items() if seconds_of(one) is None]
        ax.set_title("\n".join([setting, *missing]), fontsize=8)
    save(figure, folder / f"{task.name}.png")


def _draw_way(found: dict[str, dict], ax) -> None:
    """Draw the certified gap against time."""
    from contest.plots import plot_growth

    lines = {}
    for model, record in found.items():
        if seconds_of(record) is not None:
            way = {key: value for key, value in record["scores"].items() if key.startswith("seconds_")}
            lines[model] = list(way.values()), [float(key.removeprefix("seconds_")) for key in way]
    plot_growth(lines, numbers=NUMBERS, xlabel="seconds", ylabel="gap", ax=ax)


def _draw_growth(task: Task, settings: dict[str, dict[str, dict]], folder: Path) -> None:
    from contest.plots import plot_growth

    figure, axes = new_figure(1, 2, width=4.6, height=3.6)
    for ax, ylabel in zip(axes.flat, ("seconds", "MB"), strict=True):
        lines = {}
        for model in task.contenders:
            ended = [found[model] for found in settings.values() if seconds_of(found.get(model)) is not None]
            values = [one["times"]["run"] if ylabel == "seconds" else (one["memory"] or 0) / 1e6 for one in ended]
            if values and min(values) > 0:  # memory is not known everywhere
                lines[model] = [one["shape"][0] for one in ended], values
        plot_growth(lines, numbers=NUMBERS, xlabel="samples", ylabel=ylabel, ax=ax)
    save(figure, folder / f"{task.name}.png")


def _least(values) -> float | None:
    return min((value for value in values if value is not None), default=None)


def _ending(record: dict) -> str:
    """Return why there are no seconds."""
    return f"over {record['limit']:g} s" if record.get("status") == OVER else record.get("status", "failed")


def _short(value: float | None) -> str:
    if value is None:
        return NONE
    return f"{value:.3f}" if 1e-3 <= abs(value) < 1e3 else f"{value:.4g}"


def _time(seconds: float) -> str:
    return f"{seconds:.2g}" if seconds < 10 else f"{seconds:.0f}"
