"""The gallery: its order, from the first fit to the theory, the look of its pictures, and its thumbnails.

A thumbnail is not a figure made small: one figure of the example is laid out again at the size of a thumbnail, if
needed with only one of its Axes, so that its text can be read.
"""

from pathlib import Path

ORDER = (
    "first_fit",
    "faces",
    "wrong_cells",
    "clusters",
    "missing_values",
    "new_rows",
    "video_background",
    "bad_sensors",
    "single_cells",
    "when_pca_is_better",
    "gammas",
    "which_laplacian",
    "which_graph",
    "pipeline",
    "big_data",
    "certificate",
    "why_it_works",
)

# The figure of an example that its thumbnail shows (the first one by default), and the one of its Axes, if not all.
FIGURE = {"wrong_cells": 2, "bad_sensors": 2, "gammas": 2, "certificate": 1}
AXES = {
    "clusters": 0,
    "when_pca_is_better": 0,
    "which_laplacian": 0,
    "pipeline": 0,
    "big_data": 0,
}
INCHES, DPI = (4.0, 2.5), 180
# Images in a row of a thumbnail, at most.
IMAGES = 7
MADE = "made"
_drawn: dict[str, int] = {}


class ByIdea:
    """Sort key of the files of the gallery; one that is not named here comes last."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, filename):
        """Return the place of a file."""
        name = filename.removeprefix("plot_").removesuffix(".py")
        return (ORDER.index(name), name) if name in ORDER else (len(ORDER), name)


def scrape(block, block_vars, gallery_conf):
    """Save the figures of a block as sphinx-gallery does, and the thumbnail if one of them is its figure."""
    import matplotlib.pyplot as plt
    from sphinx_gallery.scrapers import matplotlib_scraper

    name = Path(block_vars["src_file"]).stem.removeprefix("plot_")
    kept = None
    for number in plt.get_fignums():
        _drawn[name] = _drawn.get(name, 0) + 1
        if _drawn[name] == FIGURE.get(name, 1):
            kept = plt.figure(number)
    rst = matplotlib_scraper(block, block_vars, gallery_conf)
    if kept is not None:
        folder = Path(gallery_conf["src_dir"], gallery_conf["gallery_dirs"], "images", MADE)
        folder.mkdir(parents=True, exist_ok=True)
        draw_thumbnail(kept, AXES.get(name), folder / f"{name}.png")
    return rst


def draw_thumbnail(figure, number, path):
    """Lay a figure out at the size of a thumbnail, with one of its Axes or all of them, and save it."""
    import matplotlib.pyplot as plt

    if number is not None:
        shown = figure.axes[number]
        for ax in figure.axes:
            if ax is not shown:
                ax.remove()
        shown.set_subplotspec(figure.add_gridspec(1, 1)[0])
    for legend in list(figure.legends):
        legend.remove()
    for ax in figure.axes:
        for image in ax.images[IMAGES:]:
            image.remove()
            ax.set_xlim(0, ax.images[-1].get_extent()[1])
    for legend in filter(None, (ax.get_legend() for ax in figure.axes)):
        plt.setp(legend.get_texts(), fontsize=7)
    figure.set_layout_engine("constrained")
    figure.set_size_inches(*INCHES)
    figure.savefig(path, dpi=DPI)


def place_thumbnails(app):
    """Put the thumbnails that were drawn where the gallery looks for them; runs after the examples."""
    images = Path(app.srcdir, app.config.sphinx_gallery_conf["gallery_dirs"], "images")
    for made in sorted((images / MADE).glob("*.png")):
        (images / "thumb" / f"sphx_glr_plot_{made.stem}_thumb.png").write_bytes(made.read_bytes())


def set_style(gallery_conf, fname):
    """Start every example from Matplotlib's defaults, in colours that everybody can tell apart."""
    _drawn.clear()
    import matplotlib.pyplot as plt

    from frpcag.plots.style import COLORS

    plt.rcdefaults()
    plt.rcParams.update(
        {
            "figure.dpi": 110,
            "font.size": 9,
            "axes.titlesize": 10,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.prop_cycle": plt.cycler(color=COLORS),
        }
    )
