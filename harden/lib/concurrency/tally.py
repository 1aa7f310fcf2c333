"""What was tried and what failed, in many threads and processes."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from tools.record import Row


class Tally:
    """What was tried and what failed; threads may share it."""

    def __init__(self) -> None:
        self.tried, self.failures = 0, list[str]()
        self._lock = threading.Lock()
        self._begun = time.monotonic()

    def check(self, is_right: bool, failure: str) -> None:
        """Count an answer."""
        with self._lock:
            self.tried += 1
            if not is_right:
                self.failures.append(failure)

    def same(self, what: str, answer: Callable[[], Any], expected: Any) -> None:
        """Count an answer, which must be what is expected."""
        try:
            found = answer()
        except BaseException as error:
            self.check(False, f"{what}: {type(error).__name__}: {error}")
        else:
            self.check(found == expected, f"{what}: {str(found)[:100]} instead of {str(expected)[:100]}")

    def add(self, found: Mapping[str, Any]) -> None:
        """Count what another process has tried."""
        with self._lock:
            self.tried += found["tried"]
            self.failures += found["failures"]

    def row(self, what: str, **figures: Any) -> Row:
        """Return the row of what was tried."""
        first = {"first_failure": " ".join(self.failures[0].split())} if self.failures else {}
        seconds = round(time.monotonic() - self._begun, 2)
        return {
            "what": what,
            "tried": self.tried,
            "failed": len(self.failures),
            "seconds": seconds,
            **figures,
            **first,
        }
