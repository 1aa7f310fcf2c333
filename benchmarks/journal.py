"""Tasks -> raw rows, kept as they come: a long run that was stopped goes on where it was."""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import distributions
from pathlib import Path

from benchmarks.measure import RUNS, Row, facts, show, write_run

UNFINISHED = RUNS.parents[1] / "build" / "unfinished"

Task = Callable[[], Iterable[Row]]


def run(name: str, tasks: Mapping[str, Task], packages: Sequence[str], command: str, *, small: bool) -> None:
    """Run the tasks, print their rows, and keep them as a run; a small one is only printed.

    Tasks that an earlier run of the same commit has finished are not run again.
    """
    if small:
        for task in tasks.values():
            for row in task():
                show([row])
        return
    installed = {found.name.lower().replace("_", "-") for found in distributions()}
    about = facts([package for package in packages if package in installed]) | {"command": command}
    journal = UNFINISHED / f"{name}-{about['commit']}.jsonl"
    done = _read(journal)
    for key, task in tasks.items():
        if key in done:
            print(f"{key}: done before")
        else:
            done[key] = list(task())
            show(done[key])
            _append(journal, {"task": key, "rows": done[key]})
    folder = RUNS / f"{about['date']}-{name}"
    write_run(folder, [row for key in tasks for row in done[key]], about)
    journal.unlink()
    print(f"kept in {folder.name}")


def _read(journal: Path) -> dict[str, list[Row]]:
    done: dict[str, list[Row]] = {}
    for line in journal.read_text(encoding="utf-8").splitlines() if journal.exists() else []:
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            continue  # empty, or cut short when the run was stopped
        done[entry["task"]] = entry["rows"]
    return done


def _append(journal: Path, entry: Row) -> None:
    journal.parent.mkdir(parents=True, exist_ok=True)
    with journal.open("a", encoding="utf-8") as file:
        file.write(f"\n{json.dumps(entry)}\n")  # a line of its own, whatever was cut short before it
        file.flush()
        os.fsync(file.fileno())
