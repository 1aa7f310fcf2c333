"""Rows of long benchmarks: what is done is not done again, and what may differ is not mixed."""

from importlib import import_module
from pathlib import Path

import pytest


@pytest.fixture
def journal(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    found = import_module("tools.journal")
    monkeypatch.setattr(found, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(found, "UNFINISHED", tmp_path / "unfinished")
    return found


def tasks(ran, stop_at=None):
    def task(name):
        def run():
            if name == stop_at:
                raise KeyboardInterrupt
            ran.append(name)
            yield {"name": name, "seconds": 0.5}

        return run

    return {name: task(name) for name in "abc"}


def test_a_run_that_was_stopped_goes_on_where_it_was(journal, tmp_path):
    ran = []
    with pytest.raises(KeyboardInterrupt):
        journal.run("x", tasks(ran, stop_at="c"), ["numpy"], "python", small=False)
    (unfinished,) = (tmp_path / "unfinished").iterdir()
    unfinished.write_text(unfinished.read_text() + '{"task": "c", "ro')  # cut short
    journal.run("x", tasks(ran), ["numpy"], "python", small=False)
    assert ran == ["a", "b", "c"]
    assert not list((tmp_path / "unfinished").iterdir())
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.endswith("-x")
    assert (folder / "raw.csv").read_text().splitlines() == ["name,seconds", "a,0.5", "b,0.5", "c,0.5"]
    assert "versions,numpy" in (folder / "about.csv").read_text()


def test_rows_of_another_file_or_command_are_not_taken_over(journal, tmp_path):
    files = [tmp_path / "one.tsv", tmp_path / "other.tsv"]
    for file in files:
        file.write_text(file.name)
    ran = []
    for data, command in [(files[0], "a"), (files[1], "a"), (files[1], "b"), (files[1], "b")]:
        with pytest.raises(KeyboardInterrupt):
            journal.run("x", tasks(ran, stop_at="b"), [], command, small=False, data=data)
    assert ran == ["a", "a", "a"]


def test_a_small_run_is_only_printed(journal, tmp_path, capsys):
    journal.run("x", tasks([]), [], "", small=True)
    assert capsys.readouterr().out == "name=a seconds=0.5\nname=b seconds=0.5\nname=c seconds=0.5\n"
    assert not list(tmp_path.iterdir())
