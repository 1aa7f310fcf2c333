"""Raw rows of the benchmark of unseen values -> the table of docs/leakage.md; nothing in it is typed by hand.

`python -m benchmarks.leakage.unseen_report` makes that of the newest run.
"""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.leakage.unseen import OTHER, OWN
from tools.record import Row
from tools.tables import README, Cell, make_report, number, table

PAGE = README.parent / "docs" / "leakage.md"
_ERRORS = 2  # standard errors that a difference takes to count
_INTRODUCTION = """
Log-loss on test rows with `unseen="own"`. In brackets is the difference to `unseen="other"` with its paired
standard error over the test rows (below 0: better than `other`); `*` marks more than two standard errors. *New*
is the share of test rows with a new value in some column.
"""


def write_report(folder: Path, rows: Sequence[Row], about: Sequence[Row]) -> None:
    """Write the table of a run."""
    facts = [f"- {fact['fact']}: {fact['is']}" for fact in about]
    text = "\n".join(["# An id of their own for unseen values\n", *facts, losses(rows)])
    (folder / "README.md").write_text(text.rstrip() + "\n", encoding="utf-8")


def losses(rows: Sequence[Row]) -> str:
    """Return the table of losses: a line for each table, a column for each model."""
    sums = [row for row in rows if "seeds" in row and row["unseen"] == OWN]
    models = list(dict.fromkeys(row["model"] for row in sums))
    lines = [
        {row["model"]: _cell(row) for row in sums if row["case"] == case}
        | next(
            {"case": case, "seeds": row["seeds"], "new": f"{100 * row['with_new']:.0f} %"}
            for row in sums
            if row["case"] == case
        )
        for case in dict.fromkeys(row["case"] for row in sums)
    ]
    heads: dict[str, Cell] = {
        "rows": number("case", ""),
        "new": number("new", ""),
        "seeds": number("seeds", "d"),
    }
    return "\n".join(
        [_INTRODUCTION, table(lines, heads | {model: number(model, "") for model in models}), _verdict(sums)]
    )


def _cell(row: Row) -> str:
    of_other = f"{row['difference']:+.4f} ± {row['standard_error']:.4f}{' *' if _is_clear(row) else ''}"
    return f"{row['test']:.4f} ({of_other})"


def _is_clear(row: Row) -> bool:
    return bool(abs(row["difference"]) > _ERRORS * row["standard_error"])


def _verdict(sums: Sequence[Row]) -> str:
    """Say where one of the two was clearly better."""
    better, worse = (
        [f"{row['model']} on {row['case']}" for row in sums if _is_clear(row) and side * row["difference"] > 0]
        for side in (-1, 1)
    )
    said = [
        f"`{OWN}` was clearly {word} than `{OTHER}` (by two standard errors): {'; '.join(cases) or 'nowhere'}."
        for word, cases in (("better", better), ("worse", worse))
    ]
    return "\n" + "\n".join(said) + "\n"


def _is_real(rows: Sequence[Row]) -> bool:
    return any(row["case"] == "criteo" for row in rows)


if __name__ == "__main__":
    make_report("unseen", PAGE, write_report, lambda rows: losses(rows).strip(), _is_real)
