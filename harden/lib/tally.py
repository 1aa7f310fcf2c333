"""What the checks of numbers share: cases are tried one by one, and the first that fails is kept in words."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tools.record import Row

_MAX_SHOWN = 300  # characters of a failure


@dataclass
class Tally:
    """How often something was tried and failed, and figures of which the largest counts."""

    what: str
    tried: int = 0
    failed: int = 0
    first_failure: str = ""
    figures: dict[str, Any] = field(default_factory=dict)

    @contextmanager
    def case(self, described: object) -> Iterator[None]:
        """Try one case: whatever is raised in it, a failed assertion above all, is a failure."""
        self.tried += 1
        try:
            yield
        except Exception as error:
            self.failed += 1
            said = f"{type(error).__name__}: {error} (in {described})"
            self.first_failure = self.first_failure or " ".join(said.split())[:_MAX_SHOWN]

    def most(self, figure: str, value: float) -> None:
        """Keep the largest of a figure."""
        self.figures[figure] = max(value, self.figures.get(figure, value))

    def add(self, figure: str) -> None:
        """Count one more."""
        self.figures[figure] = self.figures.get(figure, 0) + 1

    @property
    def row(self) -> Row:
        """What the check says of it."""
        told = {"first_failure": self.first_failure} if self.failed else {}
        return {"what": self.what, "tried": self.tried, "failed": self.failed} | self.figures | told
