"""The report page: all budgets of the slider together, compared with fitting and judging each of them anew.

    python -m benchmarks.page.run [--data FOLDER]     raw rows are kept in benchmarks/runs/
    python -m benchmarks.page.run --small             the same in seconds, only printed
    python -m benchmarks.page.run --report            tables of the newest run, and figures in docs/report.md

Parts: `real` (the 100,000 Criteo rows in FOLDER/criteo_100k.tsv.zst, the last 20,000 held out) and `generated`
(5 million rows with the shape of the Criteo challenge, 4.6 million of them to fit on). Rows are counted in five
folds before. Anew, a budget takes one `vf.fit` and one `evaluate` of the held-out rows, which are counted
before, too: the mean of three budgets, times the number of budgets. The answer beside the times: the largest
difference between both in the information and the gains of a column.
"""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb

import vocabfold as vf
from benchmarks.criteo_rows import write_rows
from tools.measure import timed
from tools.record import ROOT, RUNS, Row, facts, show, write_run
from tools.tables import TIMES, Cell, make_report, number, table
from vocabfold.counts.counts import Counts
from vocabfold.evaluation.held_out import count_new, judge
from vocabfold.evaluation.sweep import Step, sweep

PACKAGES = ["vocabfold", "vl-convert-python", "jinja2", "numpy", "numba", "duckdb", "pyarrow"]
PAGE = ROOT / "docs" / "report.md"
BUDGET = 2000
_UNSAID = {"positive": None, "weight": None, "drop_null_labels": False, "preset": None, "memory_limit": None}


def measured(part: str, rows: Path, share: float) -> Iterator[Row]:
    """Yield what all budgets take, and the page with them, for the first share of the rows."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        n_rows = duckdb.sql(f"SELECT count(*) FROM '{rows}'").fetchall()[0][0]
        n_old = round(share * n_rows)
        for file, span in (("old", f"LIMIT {n_old}"), ("new", f"OFFSET {n_old}")):
            duckdb.sql(f"SELECT * FROM '{rows}' {span}").write_parquet(str(folder / f"{file}.parquet"))
        vf.count(folder / "old.parquet", "label", folds=5).save(folder / "counts")
        counts = vf.load_counts(folder / "counts")
        vf.fit(counts, BUDGET).save(folder / "book")
        book = vf.load(folder / "book")
        new, _ = count_new(book, folder / "new.parquet", None, **_UNSAID)
        repeats = 3 if n_old < 10**6 else 1
        found, times = timed(repeats, sweep, book, counts, new)
        about = {"part": part, "rows": n_old, "n_values": sum(counts.n_values.values()), "budgets": len(found)}
        yield about | {"what": "all in one go"} | times
        yield about | {"what": "each anew"} | anew(counts, new, found)
        page = folder / "report.html"
        _, times = timed(1, book.report, page, counts=counts, heldout=folder / "new.parquet")
        yield about | {"what": "the page"} | times | {"megabytes": page.stat().st_size / 1e6}


def anew(counts: Counts, new: Counts, steps: Sequence[Step]) -> Row:
    """Return what fitting and judging all budgets takes, by three of them, and how far the answers differ."""
    seconds, differences = [], []
    for step in (steps[len(steps) // 4], steps[len(steps) // 2], steps[-1]):
        (fitted, judged), times = timed(1, _fit_and_judge, counts, step.budget, new)
        seconds.append(times["seconds"])
        assert step.held_out is not None
        for name, column in fitted.columns.items():
            other = step.columns[name]
            differences += [
                abs(column.information - other.information),
                abs(column.gain - other.gain),
                abs(judged[name].gain - step.held_out[name]),
            ]
    return {"seconds": sum(seconds) / 3 * len(steps), "repeats": 1, "difference": max(differences)}


def _fit_and_judge(counts: Counts, budget: int, new: Counts) -> tuple[vf.Codebook, object]:
    book = vf.fit(counts, budget)
    return book, judge(book, new, "")


_CELLS: dict[str, Cell] = {
    "rows": lambda row: f"{row['rows']:,} ({row['part']})",
    "values": number("n_values", ","),
    "budgets": number("budgets", ""),
    "what": number("what", ""),
    **TIMES,
    "largest difference (nats)": number("difference", ".1g"),
    "page (MB)": number("megabytes", ".1f"),
}


def for_page(rows: Sequence[Row]) -> str:
    """Return the table for docs/report.md."""
    lines = ["| rows | values | budgets | all in one go | each anew | the page | its size |", "|" + "---|" * 7]
    for part in dict.fromkeys(row["part"] for row in rows):
        of = {row["what"]: row for row in rows if row["part"] == part}
        once, each, page = of["all in one go"], of["each anew"], of["the page"]
        times = each["seconds"] / once["seconds"]
        cells = [
            f"{once['rows']:,} ({part})",
            f"{once['n_values']:,}",
            str(once["budgets"]),
            f"{once['seconds']:.3g} s",
            f"{times:.3g} times as long",
            f"{page['seconds']:.3g} s",
            f"{page['megabytes']:.1f} MB",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def write_report(folder: Path, rows: Sequence[Row], about: Sequence[Row]) -> None:
    """Write the table of a run."""
    texts = [
        "# The report page\n",
        *(f"- {fact['fact']}: {fact['is']}" for fact in about),
        "",
        table(rows, _CELLS),
    ]
    (folder / "README.md").write_text("\n".join(texts), encoding="utf-8")


def main() -> None:
    """Measure both parts, print and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    if options.report:
        make_report("page", PAGE, write_report, for_page)
        return
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        files = {"generated": (Path(name) / "generated.parquet", 0.92)}
        write_rows(files["generated"][0], 20_000 if options.small else 5_000_000)
        if options.data:
            files = {"real": (Path(name) / "real.parquet", 0.8)} | files
            names = ["label", *(f"I{i}" for i in range(1, 14)), *(f"C{i}" for i in range(1, 27))]
            read = duckdb.read_csv(
                str(options.data / "criteo_100k.tsv.zst"), sep="\t", header=False, names=names, all_varchar=True
            )
            read.project(f"label::INT AS label, {', '.join(names[14:])}").write_parquet(str(files["real"][0]))
        for part, (file, share) in files.items():
            for row in measured(part, file, share):
                rows.append(row)
                show([row])
    if not options.small:
        about = facts(PACKAGES) | {
            "command": "python -m benchmarks.page.run" + " --data FOLDER" * bool(options.data)
        }
        write_run(RUNS / f"{about['date']}-page", rows, about)


if __name__ == "__main__":
    main()
