"""Who is told of progress: a function, a terminal, a notebook, and nobody else."""

from unittest import mock

from hullcal.progress import reporting


def test_a_notebook_shows_a_bar_although_it_is_no_terminal(monkeypatch):
    monkeypatch.setenv("TTY_COMPATIBLE", "0")
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    with mock.patch("rich.progress.Progress") as shown, reporting(True) as report:
        report(3, 7)
    update = shown.return_value.__enter__.return_value.update
    assert (update.call_args.kwargs["completed"], update.call_args.kwargs["total"]) == (3, 7)


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
