"""Sphinx: the site of docs/, built by ``make docs`` without network, every warning an error.

With ``FRPCAG_SITE=https://...`` the pages get a version switch: the versions stand side by side at that address, one
folder each, and ``switcher.json`` lies beside them. Without it, as offline, there is no switch.
"""

import json
import os
import re
import sys
from datetime import date
from pathlib import Path

from sphinx.ext import autosummary

import frpcag

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "frpcag"
author = "The frpcag developers"
copyright = f"{date.today().year}, {author}"
version = release = frpcag.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # formulas need no network, neither here nor in the browser
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "measured",
    "cli_help",
]
exclude_patterns = ["_build", "_ext", "auto_examples/README.rst", "auto_examples/GALLERY_HEADER.rst"]
templates_path = ["_templates"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

myst_enable_extensions = ["dollarmath", "amsmath", "attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
# The first sentence of a docstring does not end at these.
autosummary.WELL_KNOWN_ABBREVIATIONS += ("Eq.", "Eqs.", "Sec.", "Fig.")
autodoc_typehints = "none"  # numpydoc says types in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "within_subsection_order": "gallery.ByIdea",
    "reset_modules": ("gallery.set_style",),
    "image_srcset": ["2x"],
    "image_scrapers": ("gallery.scrape",),
    "thumbnail_size": (720, 450),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "capture_repr": (),
    "show_signature": False,
    "min_reported_time": 1e9,  # times of the machine that builds the site are nobody's business
    "write_computation_times": False,
    "doc_module": ("frpcag",),
    "backreferences_dir": "generated/backreferences",
}

html_theme = "pydata_sphinx_theme"
html_title = "frpcag"
html_static_path = ["_static"]
html_css_files = ["frpcag.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": [], "start": [], "choose": [], "maths": [], "cost": [], "cli": []}
html_theme_options = {
    "logo": {"text": "frpcag"},
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
}
site = os.environ.get("FRPCAG_SITE", "").rstrip("/")
if site:
    html_baseurl = f"{site}/{version}/"
    html_theme_options |= {
        "switcher": {"json_url": f"{site}/switcher.json", "version_match": version},
        "check_switcher": False,  # it is not there before the first upload
        "navbar_end": ["version-switcher", "theme-switcher"],
    }


def skip_scikit_learn(app, what, name, obj, skip, options):
    """Leave out what estimators inherit from scikit-learn: it is documented there."""
    inherited = (getattr(obj, "__module__", None) or "").startswith("sklearn") or name.endswith("_request")
    return True if inherited else None


def write_switcher(app, error):
    """Write the list of released versions, newest first, for the address that the switch reads."""
    if not site or error:
        return
    changelog = (Path(__file__).parents[1] / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.findall(r"^## (\d+\.\d+\.\d+)(?! \(not)", changelog, flags=re.MULTILINE) or [version]
    versions = [{"version": one, "url": f"{site}/{one}/", "preferred": one == found[0]} for one in found]
    (Path(app.outdir) / "switcher.json").write_text(json.dumps(versions, indent=1), encoding="utf-8")


def setup(app):
    """Connect the hooks."""
    import gallery

    app.connect("autodoc-skip-member", skip_scikit_learn)
    app.connect("builder-inited", gallery.place_thumbnails, priority=900)  # after the examples have run
    app.connect("build-finished", write_switcher)
