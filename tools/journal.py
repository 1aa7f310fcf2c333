"""Tasks -> raw rows, kept as they come: a long run that was stopped goes on where it was."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import distributions
from pathlib import Path

from tools.record import CODE, ROOT, RUNS, Row, facts, fingerprint, git, show, write_run

UNFINISHED = ROOT / "build" / "unfinished"

Task = Callable[[], Iterable[Row]]


def run(
    name: str,
    tasks: Mapping[str, Task],
    packages: Sequence[str],
    command: str,
    *,
    small: bool,
    data: Path | None = None,
) -> None:
    """Run the tasks, print their rows, and keep them as a run; a small one is only printed.

    Tasks that an earlier run has finished are not run again, if it had the same code, versions, machine,
    command and file of rows.
    """
    if small:
        for task in tasks.values():
            for row in task():
                show([row])
        return
    about = _about(packages, command, data)
    journal = UNFINISHED / f"{name}-{_key(about)}.jsonl"
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


def scratch(name: str, packages: Sequence[str], command: str, data: Path | None = None) -> Path:
    """Return a folder for what the tasks of such a run, and of no other, may use again."""
    return UNFINISHED / f"{name}-{_key(_about(packages, command, data))}"


def _about(packages: Sequence[str], command: str, data: Path | None) -> dict[str, str]:
    """Return the facts about a run."""
    installed = {found.name.lower().replace("_", "-") for found in distributions()}
    about = facts([package for package in packages if package in installed]) | {"command": command}
    return about | ({"data": fingerprint(data)} if data else {})


def _key(about: Mapping[str, str]) -> str:
    """Return what differs where rows may differ."""
    same = {fact: text for fact, text in about.items() if fact != "date"}
    return hashlib.sha256(json.dumps([same, git("diff", "HEAD", "--", *CODE)]).encode()).hexdigest()[:12]


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
