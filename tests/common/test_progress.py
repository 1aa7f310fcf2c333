"""What a terminal shows while something takes long."""

import io
import re
import sys
import time
from contextlib import redirect_stderr

import pytest

from vocabfold.support import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def hurry(monkeypatch):
    monkeypatch.setattr(progress, "_PATIENCE", 0.1)
    monkeypatch.setattr(progress, "_REFRESH", 0.02)
    monkeypatch.setattr(progress, "_began", 0.0)
    monkeypatch.setenv("TERM", "xterm")


def percents(terminal):
    return [int(number) for number in re.findall(r"(\d+) %", terminal.getvalue())]


def test_a_long_task_shows_what_it_does_and_never_goes_back():
    fractions = [0.5, 0.9, 0.1, 0.2, 0.3]
    with redirect_stderr(Terminal()) as terminal:
        for _ in progress.track(
            [""], "reading", lambda: fractions.pop(0) if len(fractions) > 1 else fractions[0]
        ):
            while len(fractions) > 1:  # a busy machine shows fewer in the same time
                time.sleep(0.01)
            time.sleep(0.1)
    shown = percents(terminal)
    assert shown[0] == 50
    assert shown == sorted(shown)
    assert max(shown) == 90
    assert "reading" in terminal.getvalue()
    assert "left" in terminal.getvalue()


def test_a_short_task_shows_nothing_unless_the_command_began_long_ago(monkeypatch):
    with redirect_stderr(Terminal()) as terminal:
        for _ in progress.track(["a", "b"], "counting"):
            time.sleep(0.01)
    assert terminal.getvalue() == ""
    monkeypatch.setattr(progress, "_began", time.monotonic() - 60)
    with redirect_stderr(Terminal()) as terminal:
        for _ in progress.track(["a", "b\x1b[31m"], "counting"):
            time.sleep(0.2)
    assert "counting b" in terminal.getvalue()
    assert "b\x1b[31m" not in terminal.getvalue()


def test_of_two_bars_at_once_one_is_shown_and_what_others_print_stays_where_it_was(capsys):
    with redirect_stderr(Terminal()) as terminal:
        for _ in progress.track([""], "outside"):
            time.sleep(0.3)
            for _ in progress.track([""], "inside"):
                sys.stdout.write("printed\n")
                time.sleep(0.3)
        shown = terminal.getvalue()
        for _ in progress.track([""], "later"):
            time.sleep(0.3)
    assert "outside" in shown
    assert "inside" not in shown
    assert "later" in terminal.getvalue()
    assert "printed" not in terminal.getvalue()
    assert capsys.readouterr().out == "printed\n"


def test_nothing_is_shown_where_nobody_looks(monkeypatch):
    monkeypatch.setattr(progress, "_PATIENCE", 0)
    with redirect_stderr(io.StringIO()) as file:
        for _ in progress.track(["a"], "counting"):
            time.sleep(0.05)
    assert file.getvalue() == ""
