"""Tasks with a time limit: they run in a process of their own, which can be stopped.

A kernel cannot be interrupted, so the process is killed and begun anew. It is told what to do in lines of JSON,
and reads counts from a file of plain arrays. If whoever began it is killed, an alarm of its own ends it; the
workers of a pool that can time out (pebble 5.2 was tried) go on in their kernel then.
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
_LONGEST = 1e9  # seconds, which clocks can hold
_GRACE = 5.0  # seconds beyond the limit, after which nobody is there to stop a task
_NO_PROCESS = "a process of its own, which can be stopped, did not begin; leave time_limit out"


@contextmanager
def stoppable(
    columns: Sequence[Column], tasks: Sequence[Task], *, merge: bool, tuning: Tuning, seconds: float
) -> Iterator[Runner]:
    """Yield what runs the tasks in a process of its own, and stops one whose method takes longer."""
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
            answer = self._line(process)  # what it loses, and at least would, takes time of its own
        if answer is None:
            return Outcome(note=f"{self._reason()}.")
        outcome = Outcome(**json.loads(answer))
        return late if (outcome.seconds or 0.0) > self.seconds else outcome  # the clock came too late

    def stop(self) -> None:
        """End the process, whatever it does."""
        if self.process:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def _begin(self) -> subprocess.Popen[str]:
        """Begin a process with this very package, and whatever else can be imported here."""
        here = str(Path(__file__).parents[2])
        path = os.pathsep.join([here, *(entry for entry in sys.path if entry)])
        try:
            with (self.folder / _ERRORS).open("w", encoding="utf-8") as errors:
                self.process = subprocess.Popen(
                    # -P: nothing is imported from the folder that it happens to run in
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
        while answer not in (None, _READY):  # whatever else is imported may print
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
        """Return the next line that the process prints; nothing if it has ended."""
        assert process.stdout
        line = process.stdout.readline()
        return line.rstrip("\n") if line else None

    def _reason(self) -> str:
        """Return how a process ended that nobody stopped."""
        assert self.process
        code = self.process.wait()
        self.stop()
        said = (self.folder / _ERRORS).read_text(encoding="utf-8", errors="replace").strip()
        what = said.splitlines()[-1].rstrip(".") if said else "there may have been too little memory"
        return f"its process broke off with exit code {code}: {what}"


def serve(folder: Path) -> None:
    """Run the tasks that come in, one per line, and answer with their outcomes."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what others print is no answer

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
    """Have the system end this process after so many seconds, even in a kernel; 0: no more."""
    if hasattr(signal, "setitimer"):  # which Windows has not
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
