"""A fit in a notebook: a card with certificate, sizes, seconds and a thumbnail; the page in a frame of its own."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from frpcag.report.fit import Fit, Pictures
from frpcag.report.pictures import encode_picture
from frpcag.report.words import certificate, percent

# Rows and columns of the thumbnail, evenly spaced ones of a larger matrix.
_ROWS, _COLUMNS = 60, 120


def fit_card(model: Any) -> str:
    """Return a few lines of HTML about a fitted :class:`frpcag.FRPCAG`; they load nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag import FRPCAG
    >>> from frpcag.report.notebook import fit_card
    >>> card = fit_card(FRPCAG().fit(np.random.default_rng(0).normal(size=(20, 6))))
    >>> "20 samples, 6 features" in card
    True
    """
    fit = Fit.of_model(model)
    seconds = sum(fit.timings.values())
    longest = max(fit.timings, key=lambda stage: fit.timings[stage], default="")
    lines = [
        f"{fit.n_samples} samples, {fit.n_features} features, {len(model.singular_values_)} components",
        certificate(fit.certificate),
        f"gamma1 = {fit.gamma1:.3g}, gamma2 = {fit.gamma2:.3g}, computed by {model.backend_} in {seconds:.2g} s"
        + (f" ({longest.replace('_', ' ')} {percent(fit.timings[longest] / seconds)})" if seconds > 0 else ""),
    ]
    panes = "".join(
        f'<figure style="margin:0"><img alt="{name}" src="{address}" style="height:6em;image-rendering:pixelated">'
        f"<figcaption>{name}</figcaption></figure>"
        for name, address in _thumbnail(fit).items()
    )
    words = "".join(f"<div>{escape(line)}</div>" for line in lines)
    style = "font-size:90%;margin:.5em 0;display:flex;gap:1em;flex-wrap:wrap;align-items:center"
    return f'<div style="{style}"><div>{words}</div>{panes}</div>'


def _thumbnail(fit: Fit) -> dict[str, str]:
    """Return pictures of some entries of ``X``, ``U`` and ``S``, columns in units of their spread."""
    rows, columns = (
        np.unique(np.linspace(0, size - 1, min(size, most)).astype(int))
        for size, most in zip(fit.U.shape, (_ROWS, _COLUMNS), strict=True)
    )
    U, S = (np.asarray(A[rows][:, columns], dtype=np.float64) for A in (fit.U, fit.S))
    X = U + S
    spread = np.subtract(*np.percentile(X, (95, 5), axis=0))
    unit = np.where(spread > 0, spread, 1.0)
    middle = np.median(X, axis=0)
    stacks = {"X": ((X - middle) / unit)[None], "U, clean": ((U - middle) / unit)[None], "S": (S / unit)[None]}
    pictures = Pictures(stacks, signed=("S",))
    return {name: encode_picture(pictures, name, 0, (-1.0, 1.0)) for name in stacks}


@dataclass(frozen=True)
class InlineReport:
    """A page that a notebook shows, so that its styles and its script stay there; ``page`` is its HTML.

    Examples
    --------
    >>> from frpcag.report import InlineReport
    >>> InlineReport("<p>hello</p>")._repr_html_()[:24]
    '<iframe srcdoc="&lt;p&gt'
    """

    page: str

    def _repr_html_(self) -> str:
        style = "width:100%;height:80vh;border:1px solid #8884"
        return f'<iframe srcdoc="{escape(self.page)}" style="{style}" sandbox="allow-scripts"></iframe>'

    def __repr__(self) -> str:
        return f"InlineReport({len(self.page)} characters; a notebook shows it, report(path) writes it)"
