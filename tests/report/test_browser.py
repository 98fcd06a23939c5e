"""The report in a real browser: no errors, keyboard, sliders, tables, a phone-wide window, dark and light."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from frpcag.report import Pictures, write_report
from support.browser import needs_browser

pytestmark = needs_browser


@pytest.fixture
def opened(browser, tmp_path):
    """Open a report, or that of a fit; at the end nothing must have gone wrong or been loaded."""
    addresses = []

    def show(what, **window):
        path = what if isinstance(what, Path) else write_report(tmp_path / "report.html", what)
        addresses.append(path.as_uri())
        browser.open(path.as_uri(), **window)
        return browser

    browser.errors.clear()
    browser.requests.clear()
    yield show
    assert browser.errors == []
    assert set(browser.requests) == set(addresses)


def caption(page):
    return page.run("document.getElementById('caption').textContent")


def column(page, table, number):
    return page.run(
        f"[...document.querySelectorAll('#{table} tbody tr')].map(row => row.cells[{number}].dataset.value)"
    )


def test_slider_steps_through_the_images_by_keyboard(page, opened):
    view = opened(page)
    first = view.run("document.getElementById('pane-0').src")
    view.run("document.getElementById('position').focus()")
    view.press("ArrowRight")
    assert caption(view).startswith("image 1, label 1: ")
    assert view.run("document.getElementById('pane-0').src") != first
    view.press("End")
    assert caption(view).startswith("image 59, ")
    assert view.run("document.getElementById('pane-2').complete")


def test_images_can_be_sorted_by_corruption(page, opened):
    view = opened(page)
    view.run(
        "{ const order = document.getElementById('order'); order.value = 'corrupted'; "
        "order.dispatchEvent(new Event('change')); }"
    )
    assert caption(view).startswith("image 7, ")


def test_headings_sort_the_table_both_ways(page, opened):
    view = opened(page)
    assert column(view, "samples", 0)[0] == "7"
    head = "document.querySelector('#samples thead th button')"
    view.run(f"{head}.focus()")
    view.press("Enter")
    down = [int(value) for value in column(view, "samples", 0)]
    assert down == sorted(down, reverse=True)
    assert view.run(f"{head}.parentElement.getAttribute('aria-sort')") == "descending"
    view.press("Enter")
    assert [int(value) for value in column(view, "samples", 0)] == sorted(down)


def test_a_sample_of_the_table_shows_its_image(page, opened):
    view = opened(page)
    view.run("document.querySelector('.jump[data-index=\"7\"]').click()")
    assert caption(view).startswith("image 7, ")


def test_without_images_numbers_are_plain_text(bare, opened):
    page = opened(replace(bare, feature_shape=None))
    assert page.run("document.querySelectorAll('.jump').length") == 0
    assert column(page, "samples", 0)[0] == "7"


def test_frames_of_a_video_play_and_pause(bare, opened):
    frames = np.random.default_rng(0).integers(0, 256, (60, 12, 16), dtype=np.uint8)
    page = opened(replace(bare, pictures=Pictures({"frame": frames}, signed=(), is_video=True)))
    page.run("document.getElementById('play').click()")
    page.wait("Number(document.getElementById('position').value) >= 2")
    page.run("document.getElementById('play').click()")
    assert page.run("document.getElementById('play').textContent") == "Play"
    assert caption(page).startswith(f"frame {page.run('document.getElementById(`position`).value')}, ")


@pytest.mark.parametrize("width", [360, 768, 1400])
def test_nothing_is_wider_than_the_window(bare, opened, width):
    page = opened(
        replace(bare, title="a_very_long_name_of_a_file_" * 8, feature_names=["sensor_" * 20] * 36), width=width
    )
    assert page.run("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("dark", [False, True])
def test_colours_follow_the_surroundings(page, opened, dark):
    view = opened(page, dark=dark)
    ground, ink = (
        sum(map(int, view.run(f"getComputedStyle(document.body).{what}.match(/\\d+/g).slice(0, 3).join()").split(",")))
        for what in ("backgroundColor", "color")
    )
    assert (ground < 150 and ink > 600) if dark else (ground > 700 and ink < 150)
    assert view.run("[...document.images].every(image => image.complete && image.naturalWidth > 0)")


def test_names_with_markup_are_shown_as_text(bare, opened):
    nasty = '<img src=x onerror="window.hit=1">'
    page = opened(replace(bare, title=nasty, labels=np.array([nasty] * 60), feature_names=[nasty] * 36))
    assert page.run("document.querySelector('h1').textContent") == nasty
    assert nasty in caption(page)
    assert page.run("window.hit") is None


def test_every_control_has_a_name(page, opened):
    view = opened(page)
    assert view.run(
        "[...document.querySelectorAll('input, select, button')].every(e => e.textContent.trim() || e.labels?.length)"
    )


def test_names_stay_on_one_line_on_a_phone(bare, opened):
    names = [f"sensor of the hall {j}" for j in range(36)]
    page = opened(replace(bare, feature_names=names, labels=np.array(["a kind of its own"] * 60)), width=390)
    heights = page.run("[...document.querySelectorAll('.sortable td.name')].map(cell => cell.offsetHeight)")
    assert max(heights) < 40
    assert page.run("document.querySelector('#features td.name').title") in names


def test_four_panes_are_two_by_two_on_a_phone(bare, opened):
    stacks = {name: np.random.default_rng(0).random((60, 6, 6)) for name in ("frame", "background", "rest", "mask")}
    page = opened(replace(bare, pictures=Pictures(stacks)), width=390)
    tops = page.run("[...document.querySelectorAll('.panes figure')].map(figure => figure.offsetTop)")
    assert tops[0] == tops[1] < tops[2] == tops[3]
