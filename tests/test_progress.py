"""Who is told of progress: a function, a terminal, a notebook, and nobody else."""

import sys
from types import ModuleType

import pytest

from hullcal.progress import reporting


@pytest.fixture
def notebook(monkeypatch):
    """What rich asks of a notebook, and what it shows there."""
    shown = []

    class Output:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def clear_output(self, *, wait):
            pass

        def close(self):
            shown.append("closed")

    def display(what, **_):
        # Rich passes the text that it has rendered inside an object for the notebook.
        shown.append(getattr(what, "text", ""))

    package, room, widgets = map(ModuleType, ("IPython", "IPython.display", "ipywidgets"))
    room.display, widgets.Output, package.display = display, Output, room
    for module in (package, room, widgets):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    return shown


def test_a_notebook_shows_a_bar_and_takes_it_away(notebook):
    with reporting(True, "resamples") as report:
        report(3, 7)
    assert any("resamples" in words for words in notebook)
    assert "closed" in notebook


def test_a_terminal_shows_a_bar(monkeypatch, capsys):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with reporting(True) as report:
        report(3, 7)
    written = capsys.readouterr()
    assert "resamples" in written.err
    assert written.out == ""


def test_into_a_pipe_nothing_is_written(monkeypatch, capsys):
    monkeypatch.setenv("TTY_COMPATIBLE", "0")
    with reporting(True) as report:
        assert report is None
    assert capsys.readouterr() == ("", "")


def test_a_function_is_told_itself_and_nobody_by_default():
    def own(done, total):
        pass

    with reporting(own) as report:
        assert report is own
    with reporting(False) as report:
        assert report is None
