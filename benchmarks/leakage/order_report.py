"""Raw rows of the benchmark of orders -> the tables of docs/leakage.md; nothing in them is typed by hand.

`python -m benchmarks.leakage.order_report` makes those of the newest run.
"""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.leakage.order import ABOVE, BELOW, OTHERS, OURS, VARIANTS
from tools.record import Row
from tools.tables import README, Cell, make_report, number, table

PAGE = README.parent / "docs" / "leakage.md"
_ERRORS = 2  # standard errors that a difference takes to count
_INTRODUCTION = """
Log-losses of LightGBM (its defaults, and with `lambda_l2=10`) on test rows, the mean of five seeds. In brackets
is the difference to `vocabfold` with its paired standard error over the test rows (above 0: worse than
`vocabfold`); `*` marks more than two standard errors.
"""
_WHERE = "\nClearly better than `vocabfold`, by two standard errors: {}.\n"
_NOWHERE = "\nNo order was clearly better than `vocabfold`, by two standard errors.\n"
_FLIPS = """
The label of one row is flipped, and everything is fitted again: in how many of 25 flips the id of that row's
value moved with the label, among the dedicated ids of its column. *Below* and *above* are values with fewer
rows than it takes to be numbered by rate, and with enough.
"""


def write_report(folder: Path, rows: Sequence[Row], about: Sequence[Row]) -> None:
    """Write the tables of a run."""
    facts = [f"- {fact['fact']}: {fact['is']}" for fact in about]
    text = "\n".join(["# How dedicated ids are numbered\n", *facts, tables(rows)])
    (folder / "README.md").write_text(text.rstrip() + "\n", encoding="utf-8")


def tables(rows: Sequence[Row]) -> str:
    """Return the losses, and what the flips moved."""
    sums = [row for row in rows if "seeds" in row]
    losses = [_line(case, penalty, sums) for case, penalty in dict.fromkeys(map(_key, sums))]
    heads: dict[str, Cell] = {"rows": number("case", ""), "lambda_l2": number("lambda_l2", "g")}
    better = [
        f"{row['order']} on {row['case']} (lambda_l2 {row['lambda_l2']:g})"
        for row in sums
        if row["order"] in OTHERS and row["difference"] < -_ERRORS * row["standard_error"]
    ]
    flipped = [row for row in rows if "side" in row and row["order"] in (OURS, *OTHERS)]
    flips = [_flips(case, flipped) for case in dict.fromkeys(row["case"] for row in flipped)]
    of_flips = [f"{order}, {side}" for order in (OURS, *OTHERS) for side in (BELOW, ABOVE)]
    return "\n".join(
        [
            _INTRODUCTION,
            table(losses, heads | {order: number(order, "") for order in (OURS, *OTHERS)}),
            "And other rules that came close:\n",
            table(losses, heads | {order: number(order, "") for order in (OURS, *VARIANTS)}),
            _WHERE.format("; ".join(better)) if better else _NOWHERE,
            _FLIPS,
            table(flips, {"rows": number("case", "")} | {name: number(name, "") for name in of_flips}),
        ]
    )


def _key(row: Row) -> tuple[str, float]:
    return row["case"], row["lambda_l2"]


def _line(case: str, penalty: float, rows: Sequence[Row]) -> Row:
    """Return a line of the table of losses: what each order came to."""
    found = {row["order"]: _cell(row) for row in rows if _key(row) == (case, penalty)}
    return {"case": case, "lambda_l2": penalty} | found


def _cell(row: Row) -> str:
    if row["order"] == OURS:
        return f"{row['test']:.4f}"
    is_clear = abs(row["difference"]) > _ERRORS * row["standard_error"]
    of_ours = f"{row['difference']:+.4f} ± {row['standard_error']:.4f}{' *' if is_clear else ''}"
    return f"{row['test']:.4f} ({of_ours})"


def _flips(case: str, rows: Sequence[Row]) -> Row:
    """Return a line of the table of flips."""
    found = {
        f"{row['order']}, {row['side']}": f"{row['followed']} of {row['tried']}" if row["tried"] else ""
        for row in rows
        if row["case"] == case
    }
    return {"case": case.removeprefix("flips: ")} | found


def _is_real(rows: Sequence[Row]) -> bool:
    return any(row["case"] == "criteo" for row in rows)


if __name__ == "__main__":
    make_report("order", PAGE, write_report, lambda rows: tables(rows).strip(), _is_real)
