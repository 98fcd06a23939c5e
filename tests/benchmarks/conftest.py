"""Golden figures in a fixed style, and ``benchmarks/peers.py`` in this process, in an empty working folder."""

import signal

import peers as door
import pytest

from support.golden import assert_golden, fixed_style

__all__ = ["assert_golden", "fixed_style"]


@pytest.fixture
def working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FRPCAG_DATA", raising=False)
    return tmp_path


@pytest.fixture
def ctrl_c():
    """Send this process the signal of Ctrl-C; heard also where the tests run in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda *_, **__: signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def peers(working_folder, capsys):
    """Run the door; ``peers("recovery", "--quick")`` gives exit code, stdout and stderr."""

    def run(*words):
        try:
            code = door.main([str(word) for word in words])
        except SystemExit as end:
            code = end.code
        return code, *capsys.readouterr()

    return run
