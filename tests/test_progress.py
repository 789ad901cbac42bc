"""Who is told of progress: a function, a terminal, a notebook, and nobody else."""

from functools import partial
from unittest import mock

import pytest
from rich.progress import Progress

from hullcal.progress import bar, reporting

TERMINAL = {"TTY_COMPATIBLE": "1", "TERM": "xterm", "COLUMNS": "100"}


def test_a_notebook_shows_a_bar_although_it_is_no_terminal(monkeypatch):
    monkeypatch.setenv("TTY_COMPATIBLE", "0")
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    with mock.patch("rich.progress.Progress") as shown, reporting(True) as report:
        report(3, 7)
    update = shown.return_value.__enter__.return_value.update
    assert (update.call_args.kwargs["completed"], update.call_args.kwargs["total"]) == (3, 7)


def test_a_terminal_shows_a_bar(monkeypatch, capsys):
    for name, value in TERMINAL.items():
        monkeypatch.setenv(name, value)
    with reporting(True) as report:
        report(3, 7)
    written = capsys.readouterr()
    assert "resamples" in written.err
    assert written.out == ""


def test_what_begins_is_drawn_at_once_however_soon_it_ends(monkeypatch, capsys):
    for name, value in TERMINAL.items():
        monkeypatch.setenv(name, value)
    # No thread draws, as if no time passed between any two reports.
    monkeypatch.setattr("rich.progress.Progress", partial(Progress, auto_refresh=False))
    with bar() as report:
        for what in ("first", "second", "third"):
            report(what, 0, 1)
    written = capsys.readouterr().err
    assert all(what in written for what in ("first", "second", "third"))


@pytest.mark.parametrize("environment", [{"TTY_COMPATIBLE": "0"}, TERMINAL | {"TERM": "dumb"}])
def test_where_no_bar_can_be_drawn_nothing_is_written(environment, monkeypatch, capsys):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
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
