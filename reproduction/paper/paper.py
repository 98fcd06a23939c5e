"""Records to the paper's tables and figures: Markdown, PNG."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from reproduction.paper.figures import NONE, cell_arrays, markdown_table, new_figure, percent, save
from reproduction.paper.grid import LABEL_FREE, ON_UNIT_W, PAPER_MODELS
from reproduction.paper.speed import PAPER_TIMES

# Clustering errors of the paper on ORL by the number of neighbours, Sec. VII-C; alignment ratios, Sec. IV-A.
PAPER_NEIGHBORS = {5: 0.175, 10: 0.17, 25: 0.23, 40: 0.31}
ON_W = "FRPCAG(A), W"
PAPER_ALIGNMENT = {"3": 0.97, "all": 0.82}


def render_clustering(records: list[dict], folder: Path) -> str:
    """Return the table of errors, cell by cell, the share of cells that each model wins, and the label-free table."""
    best = {(_cell_name(one), one["cell"]["model"]): one["best"] for one in records if "best" in one}
    best |= {(_cell_name(one), ON_W): one["best_on_W"] for one in records if "best_on_W" in one}
    names = list(dict.fromkeys(_cell_name(one) for one in records))
    models = [model for model in (*PAPER_MODELS, ON_W, ON_UNIT_W) if any((name, model) in best for name in names)]

    def errors(name: str, key: str, of: Iterable[str]) -> dict[str, float]:
        return {model: best[name, model][key] for model in of if (name, model) in best}

    def table(key: str, of: list[str]) -> str:
        rows = []
        for name in names:
            found = errors(name, key, of)
            least = min(found.values(), default=None)
            rows.append([name, *(_bold(found.get(model), least) for model in of)])
        mean = ["mean of its cells", *(_mean(errors(name, key, of).get(model) for name in names) for model in of)]
        return markdown_table(["data, corruption", *of], [*rows, mean])

    free = [model for model in LABEL_FREE if any((name, model) in best for name in names)]
    parts = [
        "Smallest error (%) of ten runs of k-means, parameters picked by labels, as the paper reports it:\n",
        table("error_min", models),
        _wins(names, lambda name: errors(name, "error_min", models)),
        "\nThe same parameters, mean error of the ten runs:\n",
        table("error_mean", models),
        _wins(names, lambda name: errors(name, "error_mean", models)),
        _one_for_all(records),
        "\nNo labels anywhere. Mean error of ten runs of k-means on one embedding (k-means, UMAP), of five seeds\n"
        "(spectral clustering), or of the one run of FRPCAGClustering, which draws nothing here; the last model is\n"
        "told which entries were hit:\n",
        table("error_mean", ["k-means", *free]),
        _label_free_wins(names, lambda name: errors(name, "error_mean", ["k-means", *free])),
        _labellers({_cell_name(one): one["labellers"] for one in records if "labellers" in one}),
    ]
    _draw_errors(best, names, [model for model in models if model != ON_UNIT_W], folder)
    return "\n".join(parts)


def _cell_name(record: dict) -> str:
    return f"{record['cell']['data']}, {record['cell']['corruption']}"


def _bold(value: float | None, least: float | None) -> str:
    return f"**{percent(value)}**" if value is not None and value == least else percent(value)


def _mean(values: Iterable[float | None]) -> str:
    known = [value for value in values if value is not None]
    return percent(float(np.mean(known))) if known else NONE


def _wins(names: list[str], errors: Callable[[str], dict[str, float]]) -> str:
    """Return in words in how many of the cells FRPCAG has the smallest error."""
    ours = ("FRPCAG(A)", ON_W)
    on_any = (*ours, ON_UNIT_W)
    whole = [found for name in names if set(ours) < set(found := errors(name))]
    if not whole:
        return "\nNo cell has every model yet.\n"
    rivals = [min(value for model, value in found.items() if not model.startswith("FRPCAG")) for found in whole]
    on_U = np.mean([found["FRPCAG(A)"] <= rival for found, rival in zip(whole, rivals, strict=True)])
    on_either = np.mean(
        [min(found[model] for model in ours) <= rival for found, rival in zip(whole, rivals, strict=True)]
    )
    said = (
        f"\nOf {len(whole)} cells, FRPCAG(A) with k-means on U has the smallest error, ties included, in "
        f"{100 * on_U:.0f} %; with k-means on U or W, as labels choose, in {100 * on_either:.0f} %"
    )
    if not any(ON_UNIT_W in found for found in whole):
        return f"{said}.\n"
    least = [min(found[model] for model in on_any if model in found) for found in whole]
    on_three = np.mean([own <= rival for own, rival in zip(least, rivals, strict=True)])
    return f"{said}; with rows of W scaled to length one as a third choice, in {100 * on_three:.0f} %.\n"


def _label_free_wins(names: list[str], errors: Callable[[str], dict[str, float]]) -> str:
    """Return in words where FRPCAGClustering stands among the models that are not told what was hit."""
    ours = "FRPCAGClustering"
    whole = [found for name in names if ours in (found := errors(name)) and len(found) > 1]
    if not whole:
        return ""
    rivals = [min(value for model, value in found.items() if not model.startswith(ours)) for found in whole]
    lead = np.array([rival - found[ours] for found, rival in zip(whole, rivals, strict=True)])
    return (
        f"\nOf {len(whole)} cells, {ours}, not told, has the smallest error, ties included, in "
        f"{100 * np.mean(lead >= 0):.0f} %. Beside the best of the others in each cell it is {100 * lead.mean():.1f} "
        f"points better on average, and {max(-100 * lead.min(), 0):.1f} points worse at worst.\n"
    )


def _one_for_all(records: list[dict]) -> str:
    """Return what each model reaches with one set of parameters for all cells, the best one by labels."""
    tries: dict[str, dict[str, list[float]]] = {}
    for one in records:
        for attempt in one.get("tries", ()) if one["cell"]["model"] in PAPER_MODELS else ():
            model, params = one["cell"]["model"], attempt["params"]
            if model.startswith("FRPCAG"):
                model += ", W" if "n_components" in params else ", U"
            said = ", ".join(f"{key} {value:g}" for key, value in params.items())
            tries.setdefault(model, {}).setdefault(said, []).append(attempt["error_mean"])
    most = max((len(errors) for of in tries.values() for errors in of.values()), default=0)
    rows = []
    for model, of in tries.items():
        whole = {said: float(np.mean(errors)) for said, errors in of.items() if len(errors) == most}
        if whole:
            said = min(whole, key=whole.__getitem__)
            rows.append((whole[said], [model, str(len(of)), said or NONE, percent(whole[said])]))
    if len(rows) < 2:
        return ""
    title = f"\nOne set of parameters for all {most} cells, the best one by labels; mean error of the ten runs:\n"
    table = markdown_table(["model", "sets tried", "best", "mean error"], [row for _, row in sorted(rows)])
    return f"{title}\n{table}"


def _labellers(found: dict[str, dict[str, list[float]]]) -> str:
    """Return the table of the labellers: errors without labels, cell by cell, and their means."""
    if not found:
        return ""
    of = list(next(iter(found.values())))
    rows = []
    for name, errors in found.items():
        least = min(errors[one][0] for one in of)
        rows.append([name, *(_bold(errors[one][0], least) for one in of)])
    mean = ["mean of its cells", *(_mean(errors[one][0] for errors in found.values()) for one in of)]
    said = (
        "\nThe labellers one by one, without labels, one run each, on U and on W (two columns a cluster, rows of "
        "length one) of the fit behind FRPCAGClustering:\n"
    )
    return "\n".join([said, markdown_table(["data, corruption", *of], [*rows, mean])])


def _draw_errors(best: dict, names: list[str], models: list[str], folder: Path) -> None:
    from frpcag.plots.style import COLORS, MARKERS

    sets = list(dict.fromkeys(name.split(", ")[0] for name in names))
    figure, axes = new_figure(-(-len(sets) // 2), 2, width=5, height=2.6)
    for ax in axes.flat[len(sets) :]:
        ax.axis("off")
    order = ["clean", *(f"block{n}" for n in (15, 25, 40)), *(f"missing{n}" for n in (10, 20, 30, 40))]
    for ax, data in zip(axes.flat, sets, strict=False):
        here = [name for corruption in order if (name := f"{data}, {corruption}") in names]
        for number, model in enumerate(models):
            values = [best.get((name, model), {}).get("error_min", np.nan) for name in here]
            ours = model.startswith("FRPCAG")
            ax.plot(
                [name.split(", ")[1] for name in here],
                100 * np.array(values, dtype=float),
                color=COLORS[number % len(COLORS)] if not ours else "#000000",
                marker=MARKERS[number % len(MARKERS)],
                markersize=4,
                linewidth=2 if ours else 0.8,
                linestyle={"FRPCAG(B)": "--", "FRPCAG(C)": ":", ON_W: "-."}.get(model, "-"),
                label=model,
            )
        ax.set_title(data, fontsize=9)
        ax.set_ylabel("error, %", fontsize=8)
        ax.tick_params(labelsize=7)
        ax.tick_params(axis="x", rotation=30)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=7, fontsize=8, frameon=False)
    save(figure, folder / "clustering.png")


def render_nuclear(records: list[dict], _folder: Path) -> str:
    """Return the errors of the convex models on ORL."""
    best = {(one["cell"]["corruption"], one["cell"]["model"]): one["best"]["error_min"] for one in records}
    corruptions, models = (list(dict.fromkeys(names)) for names in zip(*best, strict=True))
    rows = []
    for corruption in corruptions:
        found = [best.get((corruption, model)) for model in models]
        least = min(value for value in found if value is not None)
        rows.append([corruption, *(_bold(value, least) for value in found)])
    return markdown_table(["corruption", *models], rows)


def render_neighbors(records: list[dict], _folder: Path) -> str:
    """Return the errors on ORL by the number of neighbours beside the paper's."""
    found = {one["cell"]["n_neighbors"]: one["best"] for one in records}
    rows = [
        [
            str(K),
            percent(PAPER_NEIGHBORS.get(K)),
            percent(best["error_min"]),
            percent(best["error_mean"]),
            f"{best['params']['gamma1']:g}, {best['params']['gamma2']:g}",
        ]
        for K, best in sorted(found.items())
    ]
    return markdown_table(["K", "paper", "smallest of 10 runs", "mean of 10 runs", "gamma1, gamma2"], rows)


def render_spectra(records: list[dict], folder: Path) -> str:
    """Draw the singular values under occlusion; return ranks and errors."""
    from frpcag.plots import plot_singular_values

    corruptions = list(dict.fromkeys(one["cell"]["corruption"] for one in records))
    figure, axes = new_figure(1, len(corruptions), width=3.4, height=2.8)
    rows = []
    for record in records:
        cell = record["cell"]
        Sigma = cell_arrays(folder, cell)["Sigma"]
        ax = axes[0, corruptions.index(cell["corruption"])]
        plot_singular_values(Sigma, ax=ax, label=cell["model"])
        ax.set_title(cell["corruption"], fontsize=9)
        ax.set_ylim(bottom=1e-2)
        share = np.cumsum(Sigma.astype(float) ** 2) / np.sum(Sigma.astype(float) ** 2)
        rows.append(
            [
                cell["corruption"],
                cell["model"],
                ", ".join(f"{name} {value:g}" for name, value in record["params"].items()) or NONE,
                percent(record["error_min"]),
                f"{Sigma[0]:.0f}",
                str(int((Sigma > 0.01 * Sigma[0]).sum())),
                str(int(np.searchsorted(share, 0.99) + 1)),
            ]
        )
    save(figure, folder / "spectra.png")
    head = ["corruption", "model", "parameters", "error", "largest", "above 1 % of it", "hold 99 % of the energy"]
    return markdown_table(head, rows)


def render_subspaces(records: list[dict], folder: Path) -> str:
    """Draw W W', Sigma, Sigma W'Q and Sigma V'P over the gammas; return errors and ranks."""
    from frpcag.plots import plot_singular_values
    from reproduction.plots import plot_alignment, plot_shape_interaction

    records = sorted(records, key=lambda one: one["cell"]["gamma"])
    figure, axes = new_figure(4, len(records), width=3, height=2.6)
    for column, record in zip(axes.T, records, strict=True):
        arrays = cell_arrays(folder, record["cell"])
        column[0].set_title(
            f"both gammas {record['cell']['gamma']:g}\nerror {percent(record['error_min'])} %", fontsize=9
        )
        plot_shape_interaction(arrays["SIM"], labels=arrays["labels"], ax=column[0])
        plot_singular_values(arrays["Sigma"], ax=column[1])
        plot_alignment(arrays["WQ"], vectors="W", basis="Q", ax=column[2])
        plot_alignment(arrays["VP"], vectors="V", basis="P", ax=column[3])
    save(figure, folder / "subspaces.png")
    rows = (
        [f"{one['cell']['gamma']:g}", percent(one["error_min"]), percent(one["error_mean"]), str(one["rank"])]
        for one in records
    )
    return markdown_table(["both gammas", "error, smallest", "error, mean", "singular values above a tenth"], rows)


def render_components(records: list[dict], folder: Path) -> str:
    """Draw digits 0 and 1 in the plane of each model; return the errors in that plane."""
    from frpcag.plots import plot_embedding

    figure, axes = new_figure(-(-len(records) // 4), 4, width=2.5, height=2.5)
    for ax in axes.flat[len(records) :]:
        ax.axis("off")
    for ax, record in zip(axes.flat, records, strict=False):
        arrays = cell_arrays(folder, record["cell"])
        plot_embedding(arrays["points"], arrays["labels"], ax=ax)
        ax.set_title(f"{record['cell']['model']}, error {percent(record['error_min'])} %", fontsize=9)
        ax.set_xlabel("")
        ax.set_ylabel("")
    save(figure, folder / "components.png")
    return markdown_table(
        ["model", "error in the plane, smallest", "mean"],
        ([one["cell"]["model"], percent(one["error_min"]), percent(one["error_mean"])] for one in records),
    )


def render_alignment(records: list[dict], folder: Path) -> str:
    """Draw the eigenvectors and Gamma; return the ratios beside the paper's."""
    from reproduction.plots import plot_graph_covariance

    figure, axes = new_figure(len(records), 3, width=3, height=3)
    rows = []
    for line, record in zip(axes, records, strict=True):
        arrays, which = cell_arrays(folder, record["cell"]), record["cell"]["digits"]
        shape = tuple(arrays["shape"].astype(int))
        for ax, name, title in zip(line, ("C", "P"), ("covariance", "graph"), strict=False):
            ax.imshow(_mosaic(arrays[name], shape), cmap="gray")
            ax.set_title(f"eigenvectors of the {title}, digits: {which}", fontsize=8)
            ax.axis("off")
        plot_graph_covariance(arrays["Gamma"], ax=line[2])
        ratios = record["s_r"]
        rows.append(
            [
                which,
                f"{PAPER_ALIGNMENT[which]:.2f}",
                f"{ratios['normalized']:.3f}",
                f"{ratios['combinatorial']:.3f}",
                str(record["n_samples"]),
            ]
        )
    save(figure, folder / "alignment.png")
    return markdown_table(["digits", "paper", "normalised Laplacian", "combinatorial", "samples"], rows)


def render_times(records: list[dict], _folder: Path) -> str:
    """Return seconds and steps beside the paper's, and the ratio to the nuclear-norm models."""
    found = {(one["cell"]["data"], one["cell"]["model"]): one for one in records}
    rows = []
    for name in dict.fromkeys(data for data, _ in found):
        ours = found.get((name, "FRPCAG"))
        if ours is None:
            continue
        times, paper = ours["times"], PAPER_TIMES.get(name)
        whole = sum(times.values())
        row = [f"{name}, {ours['shape'][0]} x {ours['shape'][1]}"]
        row += [f"{times['sample graph']:.2f}", f"{times['feature graph']:.2f}"]
        row += [f"{times['solve']:.2f} ({ours['n_iter']})", f"{times['factors']:.2f}", f"{ours['gap']:.1e}"]
        for model in ("RPCAG", "RPCA"):
            rival = found.get((name, model))
            if rival is None:
                row.append(NONE)
                continue
            spent = rival["times"]["solve"]
            ratios = f"{spent / times['solve']:.0f}x the solve, {spent / whole:.0f}x the fit"
            row.append(f"{spent:.1f} ({rival['n_iter']}), {ratios}")
        row.append(NONE if paper is None else _paper_row(paper))
        rows.append(row)
    head = ["data", "G1", "G2", "FRPCAG (steps)", "factors", "gap", "RPCAG (steps)", "RPCA (steps)"]
    return markdown_table([*head, "paper: G1, G2, FRPCAG, RPCAG, RPCA"], rows)


def _paper_row(paper: tuple) -> str:
    G1, G2, *solvers = paper
    return ", ".join([f"{G1:g}", f"{G2:g}", *("∞" if one is None else f"{one[0]:g} ({one[1]})" for one in solvers)])


def _mosaic(vectors: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Return images, each scaled to its largest entry, in rows of four."""
    images = (vectors / np.abs(vectors).max(axis=0)).T.reshape(-1, *shape)
    images = np.pad(images, ((0, -len(images) % 4), (1, 1), (1, 1)), constant_values=1)
    return np.vstack([np.hstack(list(images[start : start + 4])) for start in range(0, len(images), 4)])
