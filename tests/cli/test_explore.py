"""frpcag explore: sliders, warm starts, and a clean end."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose

from frpcag import FRPCAG, RobustGraphCleaner, build_graph
from frpcag.cli.explore import Explorer
from frpcag.report.server import ExplorerServer, Superseded
from support.browser import Browser, needs_browser

HOME = {"gamma1": 1.0, "gamma2": 1.0, "n_neighbors": 10}


def never():
    """No newer move ever comes."""


@pytest.fixture
def explorer(X):
    return Explorer(X, title="<b>data</b>", feature_shape=(4, 6))


def test_first_page_is_the_fit_at_the_automatic_gammas(explorer, X):
    model = FRPCAG().fit(X.astype(np.float32))
    assert_allclose(explorer.last.gamma1, model.gamma1_, rtol=1e-5)
    assert_allclose(explorer.last.gamma2, model.gamma2_, rtol=1e-5)
    assert_allclose(explorer.last.U, model.low_rank_, atol=0.02 * np.abs(X).max())


@pytest.mark.parametrize("k", [3, 10, 17])
@pytest.mark.parametrize("axis", [0, 1])
def test_graphs_from_one_search_are_those_built_for_each_k(explorer, X, k, axis):
    X = X.astype(np.float32)
    expected = build_graph(X - X.mean(axis=0), axis=axis, n_neighbors=k, method="exact")
    found = explorer.graphs(k)[axis]
    assert_allclose(found.laplacian.toarray(), expected.laplacian.toarray(), atol=1e-6)


def test_a_move_solves_for_its_gammas_and_is_certified(explorer):
    first = explorer.last
    answer = explorer.solve({**HOME, "gamma1": 3.0, "n_neighbors": 5}, never)
    assert explorer.last.gamma1 == pytest.approx(3 * first.gamma1)
    assert explorer.last.n_neighbors == 5
    assert explorer.last.certificate["relative_gap"] <= 1e-3
    assert answer["steps"] == explorer.last.certificate["n_iter"]
    assert set(answer["sections"]) == {"summary", "browser", "tables"}
    assert set(answer["plots"]) == {"embedding", "singular-values"}


def test_a_move_starts_from_the_last_result(explorer):
    cold = explorer.last.certificate["n_iter"]
    assert explorer.solve(HOME, never)["steps"] < cold


def test_diagnostics_are_of_the_last_fit(explorer):
    sections = explorer.diagnose({"dark": True}, never)["sections"]
    assert set(sections) == {"plots", "theory", "about"}
    assert "Theorem 1, both sides" in sections["theory"]


def test_wrong_cells_are_looked_for_once_and_only_when_asked(explorer, monkeypatch):
    asked = []
    fit = RobustGraphCleaner.fit
    monkeypatch.setattr(RobustGraphCleaner, "fit", lambda self, X: asked.append(1) or fit(self, X))
    explorer.solve(HOME, never)
    assert asked == []
    drawing = threading.Lock()
    for dark in (True, False):
        answer = explorer.cells({"dark": dark}, drawing)
        assert set(answer["sections"]) == {"cells"}
        assert 'id="plot-cells"' in answer["sections"]["cells"]
    assert asked == [1]
    assert not drawing.locked()


def test_a_newer_move_stops_the_solve(explorer):
    calls = []

    def check():
        calls.append(1)
        if len(calls) == 3:
            raise Superseded

    last = explorer.last
    with pytest.raises(Superseded):
        explorer.solve({**HOME, "gamma1": 50.0}, check)
    assert explorer.last is last


@pytest.mark.parametrize(
    "bad", [{"gamma1": 1e9}, {"gamma2": "1"}, {"n_neighbors": 0}, {"gamma1": None}, {"gamma1": True}], ids=str
)
def test_moves_out_of_range_are_refused(explorer, bad):
    with pytest.raises(ValueError, match=f"{next(iter(bad))}=.* must be a number from"):
        explorer.solve({**HOME, **bad}, never)


def test_missing_entries_are_explored_too(X):
    X[2, 3] = np.nan
    explorer = Explorer(X, title="gaps")
    assert explorer.last.has_missing
    assert np.isfinite(explorer.last.U).all()
    assert explorer.last.S[2, 3] == 0


@needs_browser
def test_sliders_redraw_the_page(explorer, tmp_path):
    server = ExplorerServer(explorer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    browser = Browser(tmp_path / "profile")
    try:
        browser.open(server.address)
        assert browser.run("document.querySelector('h1').textContent") == "<b>data</b>"
        before = browser.run("document.querySelector('#plot-embedding img').currentSrc")
        browser.run("document.getElementById('gamma1').focus()")
        browser.press("End")
        browser.wait(
            "document.getElementById('status').textContent.startsWith('solved')"
            " && !document.getElementById('status').textContent.includes('diagnostics')"
        )
        assert browser.run("document.querySelector('#plot-embedding img').currentSrc") != before
        assert "(100 " in browser.run("document.getElementById('gamma1-value').value")
        assert explorer.last.gamma1 == pytest.approx(100 * explorer.units[0])
        browser.run("document.getElementById('n_neighbors').focus()")
        browser.press("Home")
        browser.wait(
            "document.querySelector('#about').textContent.includes('n neighbors1')"
            " || /n neighbors\\s*1\\s/.test(document.querySelector('#about').innerText)"
        )
        browser.run("document.getElementById('find-cells').click()")
        browser.wait("document.querySelector('#plot-cells img') && document.querySelector('#plot-cells img').complete")
        assert "60 samples with 24 features" in browser.run("document.getElementById('cells').textContent")
        assert browser.errors == []
        assert browser.requests
        assert all(address.startswith(server.address) for address in browser.requests)
    finally:
        browser.close()
        server.shutdown()
        server.end()
        thread.join()


def test_a_port_in_use_is_an_input_error(data, frpcag):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = frpcag("explore", data, "--port", port)
    assert result.exit_code == 2
    assert f"--port={port} cannot be used" in result.stderr


def test_a_shape_of_another_size_is_an_input_error(data, frpcag):
    result = frpcag("explore", data, "--feature-shape", "5x5")
    assert result.exit_code == 2
    assert "--feature-shape=5x5 has 25 pixels" in result.stderr


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is another signal there")
def test_ctrl_c_ends_it_cleanly(data):
    # A shell that starts a process in the background has it ignore the signal, which is inherited.
    listen = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    command = [sys.executable, "-c", f"{listen}from frpcag.cli.main import main; main()", "explore", str(data)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        assert re.search(r"exploring data.npy at http://127\.0\.0\.1:\d+/\S+/ \(Ctrl-C ends\)", line), line
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out.strip(), err) == (0, "ended", "")
