"""The page itself: sections from templates, with everything a user named escaped."""

from __future__ import annotations

import base64
import hashlib
import os
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from frpcag.report import words
from frpcag.report.cells import percent
from frpcag.report.figures import draw_figures
from frpcag.report.fit import Fit
from frpcag.report.pictures import picture_browser
from frpcag.runtime.atomic import atomic_file


def render_report(fit: Fit) -> str:
    """Return the page of a fit.

    Parameters
    ----------
    fit : Fit

    Returns
    -------
    str
        HTML that loads nothing: styles, script and pictures are inside, and its content security policy allows no
        other script than its own.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag import FRPCAG
    >>> from frpcag.report import Fit, render_report
    >>> model = FRPCAG().fit(np.random.default_rng(0).normal(size=(20, 6)))
    >>> page = render_report(Fit.of_model(model, title="<b>sensors</b>"))
    >>> "<b>sensors</b>" in page, "&lt;b&gt;sensors" in page
    (False, True)
    """
    css, js = (_file(name) for name in ("style.css", "page.js"))
    cell_map, *figures = draw_figures(fit) if fit.cells is not None else (None, *draw_figures(fit))
    timings = {**fit.timings, "total": float(sum(fit.timings.values()))} if fit.timings else {}
    tables = {"Parameters": _asked(fit), "Seconds": timings, "Versions": fit.versions}
    page = (
        _templates()
        .get_template("page.html")
        .render(
            css=css,
            js=js,
            policy=_policy(css, js),
            fit=fit,
            percent=percent,
            lines=words.summary(fit),
            cell_map=cell_map,
            browser=picture_browser(fit),
            samples=words.worst_samples(fit),
            features=words.worst_features(fit),
            figures=figures,
            about={name: words.table_of(values) for name, values in tables.items()},
        )
    )
    return page.replace("\0", "\ufffd")  # what HTML has in its place


def write_report(path: str | os.PathLike, fit: Fit) -> Path:
    """Write the page of a fit to one HTML file, whole or not at all.

    Parameters
    ----------
    path : path
        The file to write; an existing one is replaced.
    fit : Fit

    Returns
    -------
    Path
        The file.
    """
    path = Path(path)
    with atomic_file(path) as partial:
        partial.touch()  # say early that it cannot be written
        partial.write_text(render_report(fit), encoding="utf-8")
    return path


def _asked(fit: Fit) -> dict[str, Any]:
    """Return the parameters; the gammas in use are told apart from those asked for."""
    names = {"gamma1": "gamma1 as asked", "gamma2": "gamma2 as asked"}
    asked = {names.get(name, name): value for name, value in fit.parameters.items() if name != "callback"}
    used = {"gamma1": fit.gamma1} if fit.is_video else {"gamma1": fit.gamma1, "gamma2": fit.gamma2}
    if fit.cells is not None:  # they were searched for, and chosen more than once
        return asked
    return {**used, **asked}


@cache
def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("frpcag.report", "page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _file(name: str) -> str:
    return (Path(__file__).parent / "page" / name).read_text(encoding="utf-8")


def _policy(css: str, js: str) -> str:
    """Return a content security policy under which nothing runs or loads but what is in the page."""
    style, script = (
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'" for text in (css, js)
    )
    return (
        f"default-src 'none'; img-src data:; style-src {style}; script-src {script}; "
        "base-uri 'none'; form-action 'none'"
    )
