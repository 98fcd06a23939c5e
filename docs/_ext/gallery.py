"""The gallery: its order, from the first fit to the theory, and the look of its pictures."""

ORDER = (
    "first_fit",
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


class ByIdea:
    """Sort key of the files of the gallery; one that is not named here comes last."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, filename):
        """Return the place of a file."""
        name = filename.removeprefix("plot_").removesuffix(".py")
        return (ORDER.index(name), name) if name in ORDER else (len(ORDER), name)


def set_style(gallery_conf, fname):
    """Start every example from Matplotlib's defaults, in colours that everybody can tell apart."""
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
