"""The page itself: sections from templates, with everything a user named escaped."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from frpcag.report import words
from frpcag.report.cells import percent
from frpcag.report.diagnostics import corruption, diagnose
from frpcag.report.figures import CELL_PLOTS, DARK, LIGHT, draw_figures
from frpcag.report.fit import Fit
from frpcag.report.pictures import MAX_PICTURES, picture_browser
from frpcag.runtime.atomic import atomic_file

SECTIONS = ("summary", "cells", "browser", "tables", "plots", "theory", "about")


def render_report(fit: Fit, *, explorer: Mapping[str, Any] | None = None) -> str:
    """Return the page of a fit.

    Parameters
    ----------
    fit : Fit
    explorer : mapping, optional
        Sliders of a live page, see `frpcag.report.server`; None makes a page that stands alone.

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
    live = explorer is not None
    return page_from(
        "page.html",
        live=live,
        title=fit.title,
        cells=fit.cells is not None,
        sections=render_sections(fit, live=live),
        explorer=explorer,
    )


def page_from(template: str, *, live: bool = False, **context: Any) -> str:
    """Return a page from a template, with the styles and the script that its policy allows."""
    css, js = (_file(name) for name in ("style.css", "page.js"))
    return _templates().get_template(template).render(css=css, js=js, policy=_policy(css, js, live=live), **context)


def render_sections(
    fit: Fit,
    names: Sequence[str] = SECTIONS,
    *,
    themes: Sequence[str] = (LIGHT, DARK),
    max_pictures: int = MAX_PICTURES,
    check: Callable[[], None] = lambda: None,
    live: bool = False,
) -> dict[str, str]:
    """Return the HTML of parts of the page by their names.

    Parameters
    ----------
    fit : Fit
    names : sequence of str
        Out of ``SECTIONS``.
    themes : sequence of {"light", "dark"}
        Variants of the plots.
    max_pictures : int
        In the browser.
    check : callable
        Called now and then; it may raise to end the work.
    live : bool
        The page can ask for a cell map that is not there yet.

    Returns
    -------
    dict of str to str
    """
    shares = corruption(fit)
    numbers = diagnose(fit) if {"plots", "theory"} & set(names) else None
    context: dict[str, Any] = {"fit": fit, "percent": percent}
    if "summary" in names:
        context["lines"] = words.summary(fit, shares)
    if "cells" in names:
        context |= {
            "live": live,
            "cell_lines": [] if "summary" in names or fit.cells is None else words.summary(fit, shares),
        }
        context["cell_map"] = draw_figures(fit, None, themes=themes, only=CELL_PLOTS, check=check)
    if "browser" in names:
        context["browser"] = picture_browser(fit, shares, limit=max_pictures)
    if "tables" in names:
        context["samples"], context["features"] = words.worst_samples(fit, shares), words.worst_features(fit, shares)
    if "plots" in names:
        context["figures"] = draw_figures(fit, numbers, themes=themes, leave=CELL_PLOTS, check=check)
    if "theory" in names:
        context["theory"] = words.theory(fit, numbers) if numbers is not None else []
    if "about" in names:
        context["about"] = {
            "Parameters": words.table_of(_asked(fit)),
            "Seconds": words.table_of(
                {**fit.timings, "total": float(sum(fit.timings.values()))} if fit.timings else {}
            ),
            "Versions": words.table_of(fit.versions),
        }
    return {name: _templates().get_template(f"{name}.html").render(context) for name in names}


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


def _policy(css: str, js: str, *, live: bool) -> str:
    """Return a content security policy under which nothing runs or loads but what is in the page."""
    style, script = (
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'" for text in (css, js)
    )
    connect = "connect-src 'self'; " if live else ""
    return (
        f"default-src 'none'; img-src data:; style-src {style}; script-src {script}; {connect}"
        "base-uri 'none'; form-action 'none'"
    )
