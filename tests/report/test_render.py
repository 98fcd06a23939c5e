"""The page as text: complete, self-contained, escaped."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from frpcag import FRPCAG
from frpcag.report import Fit, render_report, write_report

NASTY = '"><img src=x onerror=alert(1)></script><b>'


class Links(HTMLParser):
    """Everything a page would load, and the tags it has."""

    def __init__(self, text):
        super().__init__()
        self.loaded, self.tags = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag != "a":
            self.loaded += [value for name, value in attrs if name in ("src", "srcset", "href", "data", "action")]


@pytest.fixture
def text(page):
    return page.read_text(encoding="utf-8")


def test_page_loads_nothing_from_elsewhere(text):
    loaded = Links(text).loaded
    assert loaded, "no image is seen"
    assert all(address.startswith("data:") for address in loaded)
    assert not re.findall(r"url\(|@import|https?://", re.sub(r"data:[^\"]*", "", text))


def test_page_holds_every_part(text):
    for name in ("summary", "cells", "browser", "tables", "plots", "about"):
        assert f'<section id="{name}"' in text
    for plot in ("embedding", "singular-values", "history", "outliers"):
        assert f'id="plot-{plot}"' in text
    assert "proved to be within" in text


def test_everything_a_user_named_is_escaped(bare):
    nasty = replace(
        bare,
        title=NASTY,
        labels=np.array([NASTY] * 60),
        feature_names=[NASTY] * 36,
        warnings=[NASTY],
        parameters={NASTY: NASTY},
        files={NASTY: NASTY},
        versions={NASTY: NASTY},
        timings={NASTY: 1.0},
    )
    page, plain = render_report(nasty), render_report(bare)
    assert "<img src=x" not in page
    assert Links(page).tags.count("b") == Links(plain).tags.count("b")
    assert page.count("</script>") == plain.count("</script>")


def test_policy_names_the_hashes_of_the_style_and_script_inside(text):
    import base64
    import hashlib

    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1].replace("&#39;", "'")
    for tag, rule in (("style", "style-src"), ("script", "script-src")):
        inside = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "connect-src" not in policy


def test_a_bare_decomposition_makes_a_page():
    page = render_report(Fit(U=np.ones((4, 3)), S=np.zeros((4, 3))))
    assert "No entry stands out" in page


@pytest.fixture
def no_plots(monkeypatch):
    monkeypatch.setattr("frpcag.report.render.draw_figures", lambda *_, **__: [])


def test_model_writes_its_own_report(model, tmp_path, no_plots):
    path = model.report(tmp_path / "page.html", labels=np.arange(60) % 3, title="my images")
    assert path == tmp_path / "page.html"
    page = path.read_text(encoding="utf-8")
    assert "<title>my images - frpcag report</title>" in page
    assert [entry.name for entry in tmp_path.iterdir()] == ["page.html"]


def test_names_of_a_frame_reach_the_table_of_features(tmp_path, no_plots):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 4)), columns=["ph", "salt", "oxygen", "temp"])
    page = FRPCAG().fit(X).report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert 'data-value="oxygen"' in page


def test_an_unfitted_model_has_no_report(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        FRPCAG().report(tmp_path / "page.html")


def test_a_report_that_fails_leaves_the_old_one(bare, tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("old")
    monkeypatch.setattr("frpcag.report.render.draw_figures", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report(path, bare)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["page.html"]


def test_labels_may_be_a_list_of_words(model, tmp_path):
    page = model.report(tmp_path / "page.html", labels=list("abc" * 20)).read_text(encoding="utf-8")
    assert "<td>c</td>" in page or 'data-value="c"' in page


def test_labels_that_are_not_one_a_sample_are_refused(model, tmp_path):
    with pytest.raises(ValueError, match=r"labels has shape \(3,\) but there are 60 samples"):
        model.report(tmp_path / "page.html", labels=[0, 1, 2])


def test_pages_hold_no_nul_bytes(bare, no_plots):
    assert "\0" not in render_report(replace(bare, title="a\0b"))
