"""Raw rows of the transform benchmark -> tables; nothing in them is typed by hand.

`python -m benchmarks.transform.report` makes those of all runs, and the figures in the project's README.
"""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.transform.run import ENCODER, FRAME, JOIN, OURS
from tools.record import RUNS, read_csv
from tools.tables import TIMES, Cell, Row, figures, newest, number, step, table, update_readme

_STEP: dict[str, Cell] = {"step": number("step", "")}
_FILES: dict[str, Cell] = {
    "peak memory (MB)": number("peak_mb", ",.0f"),
    "sum of all ids": number("sum_of_ids", ","),
}
_FRAMES: dict[str, Cell] = {"values": number("values", ""), "rows": number("n_rows", ",")}
_ANSWER: dict[str, Cell] = {"distinct": number("n_values", ","), "unseen": number("n_unseen", ",")}


def write_report(folder: Path, rows: Sequence[Row], about: Sequence[Row]) -> None:
    """Write the tables of a run."""
    parts = {part: [row for row in rows if row["part"] == part] for part in ("files", "frames", "commands")}
    checked = step(rows, "check of every id")
    texts = [
        "# From rows to ids\n",
        *(f"- {fact['fact']}: {fact['is']}" for fact in about),
        "\n## Files\n",
        table(parts["files"], {**_STEP, **TIMES, **_FILES}),
        f"Transform takes {_file_ratio(rows):.2f} times as long as the joins. "
        f"Of {checked['n_checked']:,} ids in the order of the rows, {checked['n_wrong']:,} are wrong.\n",
        "## Frames\n",
        table(parts["frames"], {**_STEP, **_FRAMES, **TIMES, **_ANSWER}),
        *(f"OrdinalEncoder takes {ratio:.1f} times as long ({kind}).\n" for kind, ratio in _frame_ratios(rows)),
        "## Commands\n",
        table(parts["commands"], {**_STEP, **TIMES}),
    ]
    (folder / "README.md").write_text("\n".join(texts).rstrip() + "\n", encoding="utf-8")


def headlines(rows: Sequence[Row]) -> str:
    """Return the table for the project's README."""
    ours = step(rows, OURS)
    return figures(
        [
            (
                f"a file of {ours['n_rows'] / 1e6:.0f} million rows x 26 columns to ids, order kept",
                f"{ours['seconds']:.1f} s, peak memory {ours['peak_mb'] / 1000:.2f} GB",
            ),
            (
                "the same, relative to DuckDB's 26 joins, which lose the order",
                f"{_file_ratio(rows):.2f} times as long",
            ),
            *(
                (
                    f"OrdinalEncoder on a frame of 2 million rows, 220,000 values, {kind}",
                    f"takes {ratio:.0f} times as long",
                )
                for kind, ratio in _frame_ratios(rows)
            ),
            *((f"`{row['step']}`", f"{row['seconds']:.2f} s") for row in rows if row["part"] == "commands"),
        ]
    )


def _file_ratio(rows: Sequence[Row]) -> float:
    return float(step(rows, OURS)["seconds"] / step(rows, JOIN)["seconds"])


def _frame_ratios(rows: Sequence[Row]) -> list[tuple[str, float]]:
    frames = [row for row in rows if row["part"] == "frames"]
    rivals, ours = ([row for row in frames if row["step"] == step] for step in (ENCODER, FRAME))
    return [
        (rival["values"], rival["seconds"] / our["seconds"]) for rival, our in zip(rivals, ours, strict=True)
    ]


if __name__ == "__main__":
    for run in RUNS.glob("*-transform-*m"):
        write_report(run, read_csv(run / "raw.csv"), read_csv(run / "about.csv"))
    latest = newest("transform-5m")
    update_readme("transform-5m", latest.name, headlines(read_csv(latest / "raw.csv")))
