"""Tasks with a time limit: they run in a separate process, which can be stopped.

A kernel cannot be interrupted, so the process is killed and started anew. It receives its tasks as lines of
JSON, and reads counts from a file of plain arrays. If its parent is killed, an alarm of its own ends it; the
workers of a process pool with timeouts (pebble 5.2 was tried) would stay in their kernel.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import numpy as np

from vocabfold.errors import VocabfoldError
from vocabfold.evaluation.trials import Column, Outcome, Runner, Task, Trials
from vocabfold.folding.allocation import Tuning
from vocabfold.io.folders.temporary import TemporaryFolder

_COUNTS = "counts.npz"
_ERRORS = "errors.txt"
_READY, _FOLDED = "ready", "folded"
_LONGEST = 1e9  # seconds that clocks can represent
_GRACE = 5.0  # seconds beyond the limit: if no parent has stopped a task by then, it has none
_NO_PROCESS = "the separate process that time_limit needs did not start; leave time_limit out"


@contextmanager
def stoppable(
    columns: Sequence[Column], tasks: Sequence[Task], *, merge: bool, tuning: Tuning, seconds: float
) -> Iterator[Runner]:
    """Yield a runner that uses a separate process, and stops a task whose method exceeds the limit."""
    seconds = min(seconds, _LONGEST)
    with TemporaryFolder() as folder:
        sides = {
            f"{side}{i}": getattr(column, side)
            for i, column in enumerate(columns)
            for side in ("neg", "pos", "n_values")
        }
        np.savez(folder / _COUNTS, **{name: side for name, side in sides.items() if side is not None})
        about = {
            "n_columns": len(columns),
            "merge": bool(merge),
            "tuning": {
                "epsilon": float(tuning.epsilon),
                "shards": int(tuning.shards),
                "seed": int(tuning.seed),
            },
            "tasks": [asdict(task) for task in tasks],
            "seconds": seconds,
        }
        runner = _Stoppable(folder, json.dumps(about), seconds)
        try:
            yield runner
        finally:
            runner.stop()


class _Stoppable:
    """Runs tasks in a process that is killed when a task takes too long, and then started anew."""

    def __init__(self, folder: Path, about: str, seconds: float) -> None:
        self.folder, self.about, self.seconds = folder, about, seconds
        self.process: subprocess.Popen[str] | None = None

    def run(self, task: Task) -> Outcome:
        """Run a task, or say why it did not finish."""
        process = self.process or self._begin()
        is_late = threading.Event()

        def end() -> None:
            is_late.set()
            process.kill()

        timer = threading.Timer(self.seconds, end)
        timer.daemon = True
        timer.start()
        try:
            answer = self._ask(process, json.dumps(asdict(task)))
        finally:
            timer.cancel()
        timer.join()
        late = Outcome(note=f"not finished within {self.seconds:g} s.")
        if is_late.is_set():
            self.stop()
            return late
        if answer == _FOLDED:
            answer = self._line(process)  # the loss and its bound come later, outside the limit
        if answer is None:
            return Outcome(note=f"{self._reason()}.")
        outcome = Outcome(**json.loads(answer))
        return late if (outcome.seconds or 0.0) > self.seconds else outcome  # the timer was late

    def stop(self) -> None:
        """Kill the process, whatever it does."""
        if self.process:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def _begin(self) -> subprocess.Popen[str]:
        """Start a process with this very package, and the import path of this one."""
        here = str(Path(__file__).parents[2])
        path = os.pathsep.join([here, *(entry for entry in sys.path if entry)])
        try:
            with (self.folder / _ERRORS).open("w", encoding="utf-8") as errors:
                self.process = subprocess.Popen(
                    # -P: import nothing from the current folder
                    [sys.executable, "-P", "-m", "vocabfold.evaluation.time_limit", str(self.folder)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                    env=os.environ | {"PYTHONPATH": path},
                )
        except OSError as error:
            raise VocabfoldError(f"{_NO_PROCESS} ({error})") from error
        answer = self._ask(self.process, self.about)
        while answer not in (None, _READY):  # other imports may print
            answer = self._line(self.process)
        if answer is None:
            raise VocabfoldError(f"{_NO_PROCESS} ({self._reason()})")
        return self.process

    def _ask(self, process: subprocess.Popen[str], line: str) -> str | None:
        assert process.stdin
        try:
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
        except OSError:  # it is gone
            return None
        return self._line(process)

    @staticmethod
    def _line(process: subprocess.Popen[str]) -> str | None:
        """Return the next line that the process prints, or None if it has ended."""
        assert process.stdout
        line = process.stdout.readline()
        return line.rstrip("\n") if line else None

    def _reason(self) -> str:
        """Say why the process ended although nobody stopped it."""
        assert self.process
        code = self.process.wait()
        self.stop()
        said = (self.folder / _ERRORS).read_text(encoding="utf-8", errors="replace").strip()
        what = said.splitlines()[-1].rstrip(".") if said else "perhaps it ran out of memory"
        return f"the process ended with exit code {code}: {what}"


def serve(folder: Path) -> None:
    """Run the tasks from standard input, one per line, and answer each with its outcome."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # other output is no answer

    def answer(line: str) -> None:
        answers.write(f"{line}\n")
        answers.flush()

    about = json.loads(sys.stdin.readline())
    with np.load(folder / _COUNTS, allow_pickle=False) as arrays:
        columns = [
            Column(*(arrays.get(f"{side}{i}") for side in ("neg", "pos", "n_values")))
            for i in range(about["n_columns"])
        ]
    trials = Trials(columns, merge=about["merge"], tuning=Tuning(**about["tuning"]))
    trials.prepare(Task(**task) for task in about["tasks"])
    answer(_READY)

    def is_folded() -> None:
        _end_after(0)
        answer(_FOLDED)

    for line in sys.stdin:
        _end_after(about["seconds"] + _GRACE)
        outcome = trials.run(Task(**json.loads(line)), when_folded=is_folded)
        _end_after(0)
        answer(json.dumps(asdict(outcome)))


def _end_after(seconds: float) -> None:
    """Have the system end this process after so many seconds, even inside a kernel; 0 cancels that."""
    if hasattr(signal, "setitimer"):  # not on Windows
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
