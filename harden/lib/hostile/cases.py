"""Cases of one door: each must come back, or must be refused; and the rows that they are made of."""

import os
import tempfile
import warnings
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from harden.lib import corpus
from harden.lib.commands import Wrong
from harden.lib.hostile.judge import Refused
from tools.record import Row

LABEL, VALUE, KEPT = "y", "v", "kept"


class Tally:
    """Cases of one door: how many came back, were refused, failed."""

    def __init__(self) -> None:
        self.facts: Row = {"tried": 0, "failed": 0, "refused": 0}

    def run(self, what: str, case: Callable[[Path], None], refused: bool = False) -> None:
        """Try one case, which must come back, or must be refused."""
        self.facts["tried"] += 1
        error = _raised(case)
        if isinstance(error, Refused) and refused:
            self.facts["refused"] += 1
        elif error or refused:
            self._fail(what, error or Wrong("it came back, and should have been refused"))

    def all(
        self,
        what: str,
        entries: Sequence[Any],
        case: Callable[[Sequence[Any], Path], None],
        refused: Collection[Any] = (),
    ) -> None:
        """Try many entries together, and those that must be refused one by one."""
        for entry in entries:
            if entry in refused:
                self.run(f"{what} {entry!r:.80}", lambda folder, entry=entry: case([entry], folder), True)
        self._together(what, [entry for entry in entries if entry not in refused], case)

    def _together(self, what: str, entries: Sequence[Any], case: Callable[[Sequence[Any], Path], None]) -> None:
        """Try many entries at once; if that fails, halves of them, down to the one that is to blame."""
        if len(entries) < 2:
            for entry in entries:
                self.run(f"{what} {entry!r:.80}", lambda folder: case(entries, folder))
            return
        error = _raised(lambda folder: case(entries, folder))
        if error is None:
            self.facts["tried"] += len(entries)
            return
        failed, half = self.facts["failed"], len(entries) // 2
        self._together(what, entries[:half], case)
        self._together(what, entries[half:], case)
        if self.facts["failed"] == failed:  # no entry is wrong alone: some are taken for one another
            self._fail(f"{what} {entries[0]!r:.80} and {len(entries) - 1} more", error)

    def _fail(self, what: str, error: BaseException) -> None:
        self.facts["failed"] += 1
        failure = f"{what}: {type(error).__name__}: {str(error)[:400]}"
        self.facts.setdefault("first_failure", failure)
        if os.environ.get("HOSTILE_DEBUG"):
            print(f"    {failure}", flush=True)


def _raised(case: Callable[[Path], None]) -> BaseException | None:
    """Return what a case raised; a panic of a library in Rust is no Exception."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            case(Path(folder))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return error
    return None


def rows_of(values: Sequence[Any], type: str) -> pa.Table:
    """Return rows in which each value comes a number of times of its own."""
    repeated = [(value, i) for i, value in enumerate(values) for _ in range(2 + i % 3)]
    target = [j % (2 + i % 2) == 0 for j, (_, i) in enumerate(repeated)]
    target[:2] = [True, False]
    column = pa.array([value for value, _ in repeated], pa.type_for_alias(type))
    kept = column if type == "string" else column.cast(pa.string()) if type == "bool" else column
    return pa.table({VALUE: column, KEPT: kept, LABEL: pa.array(target).cast(pa.int64())})


def of_objects(columns: dict[str, list[Any]]) -> Any:
    """Return a frame of pandas with names and values as Python has them, UTF-8 or not."""
    import pandas

    frame = pandas.DataFrame(dict(enumerate(columns.values())), dtype=object)
    return frame.set_axis(pandas.Index(list(columns), dtype=object), axis=1)


def written(path: Path, text: str) -> Path:
    """Write a text, UTF-8 or not, and return where it is."""
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path


def hostile_rows(n: int = 3) -> pa.Table:
    """Return rows with hostile texts in columns of hostile names, which Parquet and all doors take."""
    texts = [text for text in corpus.TEXTS if len(text) < 5000] * n
    columns = {
        "'; DROP TABLE table_0; --": texts,
        "<script>window.hacked = 1</script>": texts[::-1],
        "\x1b[31mred\x1b[0m\n": [text[:1] for text in texts],
        "value": [i % 7 for i in range(len(texts))],
        "label": [float(i % 4) / 4 for i in range(len(texts))],
    }
    return pa.table(columns | {"\u202ey \x9b": [int(i * i % 7 < 3) for i in range(len(texts))]})
