"""Tasks with a time limit: they run in a process of their own, which can be stopped.

A kernel cannot be interrupted, so the process is killed and begun anew. It is told what to do in lines of JSON,
and reads the counts from a file of plain arrays.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from vocabfold.budget import Tuning
from vocabfold.trials import Column, Outcome, Runner, Task, Trials, warm_up

_COUNTS = "counts.npz"
_ERRORS = "errors.txt"
_READY = "ready"


@contextmanager
def stoppable(
    columns: Sequence[Column], tasks: Sequence[Task], *, merge: bool, tuning: Tuning, seconds: float
) -> Iterator[Runner]:
    """Yield what runs the tasks in a process of its own, and stops one that takes longer."""
    with TemporaryDirectory(prefix="vocabfold-") as folder:
        arrays = {
            f"{side}{i}": getattr(column, side)
            for i, column in enumerate(columns)
            for side in ("neg", "pos", "n_values")
        }
        np.savez(Path(folder) / _COUNTS, **arrays)
        about = {
            "n_columns": len(columns),
            "merge": merge,
            "tuning": {name: getattr(tuning, name) for name in ("epsilon", "shards", "seed")},
            "tasks": [asdict(task) for task in tasks],
        }
        runner = _Stoppable(Path(folder), json.dumps(about), seconds)
        try:
            yield runner
        finally:
            runner.stop()


class _Stoppable:
    """Runs tasks in a process that is killed when one takes too long, and then begun anew."""

    def __init__(self, folder: Path, about: str, seconds: float) -> None:
        self.folder, self.about, self.seconds = folder, about, seconds
        self.process: subprocess.Popen[str] | None = None

    def run(self, task: Task) -> Outcome:
        """Run a task, or say why it did not come to its end."""
        process = self.process or self._begin()
        is_late = threading.Event()

        def end() -> None:
            is_late.set()
            process.kill()

        timer = threading.Timer(self.seconds, end)
        timer.start()
        answer = self._ask(process, json.dumps(asdict(task)))
        timer.cancel()
        timer.join()
        if is_late.is_set():
            self.stop()
        if answer:
            return Outcome(**json.loads(answer))
        why = f"not finished within {self.seconds:g} s" if is_late.is_set() else self._reason()
        return Outcome(note=f"{why}.")

    def stop(self) -> None:
        """End the process, whatever it does."""
        if self.process:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def _begin(self) -> subprocess.Popen[str]:
        # What this process can import, that one can; and nothing from the folder it happens to run in.
        path = os.pathsep.join(entry for entry in sys.path if entry)
        with (self.folder / _ERRORS).open("w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "vocabfold.stopping", str(self.folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=os.environ | {"PYTHONPATH": path},
            )
        process = self.process
        if self._ask(process, self.about).strip() != _READY:
            raise RuntimeError(self._reason())
        return process

    def _ask(self, process: subprocess.Popen[str], line: str) -> str:
        assert process.stdin
        assert process.stdout
        try:
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
        except BrokenPipeError:
            return ""
        return process.stdout.readline()

    def _reason(self) -> str:
        """Return how a process ended that nobody stopped."""
        assert self.process
        code = self.process.wait()
        self.stop()
        said = (self.folder / _ERRORS).read_text(encoding="utf-8", errors="replace").strip()
        what = said.splitlines()[-1] if said else "there may have been too little memory"
        return f"its process broke off with exit code {code}: {what}"


def serve(folder: Path) -> None:
    """Run the tasks that come in, one per line, and answer with their outcomes."""
    about = json.loads(sys.stdin.readline())
    with np.load(folder / _COUNTS, allow_pickle=False) as arrays:
        columns = [
            Column(*(arrays[f"{side}{i}"] for side in ("neg", "pos", "n_values")))
            for i in range(about["n_columns"])
        ]
    trials = Trials(columns, merge=about["merge"], tuning=Tuning(**about["tuning"]))
    for task in about["tasks"]:
        warm_up(task["method"], task["allocation"])
    _answer(_READY)
    for line in sys.stdin:
        _answer(json.dumps(asdict(trials.run(Task(**json.loads(line))))))


def _answer(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
