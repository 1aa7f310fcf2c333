"""The scikit-learn door against scikit-learn's own encoders: one run, side by side.

    python -m benchmarks.speed.estimator            2 million rows x 5 columns, some minutes; raw rows are kept
    python -m benchmarks.speed.estimator --small    the same in seconds, only printed
    python -m benchmarks.speed.estimator --report   tables of the newest run, and its figures in the README

Columns have 20 to 220,000 values, some of them far more rows than others. `fit` and `fit_transform` stand
against TargetEncoder's, `transform` of as many new rows (some with values never seen) against OrdinalEncoder's
and TargetEncoder's, and so does a frame of one row. All get the same frames; times are the least of the
repeats; ours runs on all cores, the rivals on one. The answers beside the times: the values that were learnt;
the new rows' values that were not among them; and the AUC on the new rows of a logistic regression that was
trained on what `fit_transform` returned, as log-odds of the rates that TargetEncoder gives, or that ids have.

Then come ordinary frames: 200, 5,000 and 72,983 rows x 16 columns of 10 to 41,000 values. Their times are
seconds of all processors together, after a call that warms up, the least of five, with TargetEncoder in turns.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import OrdinalEncoder, TargetEncoder

import vocabfold as vf
from tools.measure import cpu_timed, extra_memory, timed
from tools.record import RUNS, Row, facts, read_csv, show, write_run
from tools.tables import TIMES, Cell, figures, newest, number, table, update_readme

PACKAGES = ["vocabfold", "scikit-learn", "pandas", "numpy", "numba", "duckdb", "pyarrow"]
N_VALUES = (220_000, 50_000, 5_000, 500, 20)
ORDINARY, N_ORDINARY = (200, 5_000, 72_983), tuple(int(10 * 2 ** (0.8 * i)) for i in range(16))
BUDGET = 1000
OURS, TARGET, ORDINAL = "VocabularyCompressor", "TargetEncoder", "OrdinalEncoder"
FIRST = f"{OURS}, first time"  # which loads the codebook
KINDS: dict[str, Callable[[pd.Series], pd.Series]] = {
    "text": lambda numbers: numbers.map("user-{:08x}".format).astype("str"),
    "text as objects": lambda numbers: numbers.map("user-{:08x}".format).astype(object),
    "categories": lambda numbers: numbers.map("user-{:08x}".format).astype("category"),
    "integers": lambda numbers: numbers,
}


def numbered(
    n_rows: int, n_unseen: float, seed: int, columns_of: Sequence[int] = N_VALUES
) -> tuple[pd.DataFrame, Any]:
    """Return rows with values as numbers, and their labels; a share of them has values of no other seed."""
    rng = np.random.default_rng(seed)
    columns, logit = {}, np.full(n_rows, -1.5)
    for n_values in columns_of:
        rank = (n_values * rng.power(0.3, n_rows)).astype(np.int64)  # half of the rows in a tenth of the values
        logit += np.random.default_rng(n_values).normal(0, 0.5, n_values)[rank]
        is_unseen = rng.random(n_rows) < n_unseen
        columns[f"of {n_values:,}"] = np.where(is_unseen, n_values + seed * n_rows + np.arange(n_rows), rank)
    return pd.DataFrame(columns), (rng.random(n_rows) < 1 / (1 + np.exp(-logit))).astype(np.int64)


def log_odds(encoder: Any, encoded: Any) -> Any:
    """Return the log-odds of each row and column: by the rates of TargetEncoder, or by those of our ids."""
    rates = encoded
    if isinstance(encoder, vf.VocabularyCompressor):
        columns = encoder.codebook_.columns.values()
        rates = np.column_stack([np.array(column.rates)[encoded[:, i]] for i, column in enumerate(columns)])
    rates = np.clip(rates, 1e-3, 1 - 1e-3)
    return np.log(rates / (1 - rates))


def n_learnt(encoder: Any) -> Row:
    """Return how many values an encoder knows."""
    if isinstance(encoder, vf.VocabularyCompressor):
        return {"n_values": encoder.codebook_.n_values}
    return {"n_values": sum(map(len, encoder.categories_))}


def n_unseen(encoder: Any, encoded: Any) -> Row:
    """Return how many values an encoder did not know; TargetEncoder does not say."""
    if isinstance(encoder, TargetEncoder):
        return {}
    sizes = np.array(list(encoder.sizes_.values())) if isinstance(encoder, vf.VocabularyCompressor) else 0
    return {"n_unseen": int((encoded == sizes - 1).sum())}


def measured(kind: str, small: bool) -> Iterator[Row]:
    """Yield a row for each step and method."""
    n_rows = 20_000 if small else 2_000_000
    (numbers, y), (new_numbers, new_y) = numbered(n_rows, 0, 1), numbered(n_rows, 0.02, 2)
    X, new = (frame.apply(KINDS[kind]) for frame in (numbers, new_numbers))
    one = new.iloc[[7]].reset_index(drop=True)
    encoders = {
        TARGET: TargetEncoder(target_type="binary"),
        ORDINAL: OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, dtype=np.int32),
        OURS: vf.VocabularyCompressor(BUDGET, unseen="own"),
    }
    repeats = 1 if small else 3

    def row(step: str, method: str, times: Row, memory: float, answer: Row) -> Row:
        about = {"step": step, "values": kind, "n_rows": 1 if step == "one row" else n_rows, "method": method}
        return about | times | {"extra_mb": memory} | answer

    for name, encoder in encoders.items():
        labels = () if name == ORDINAL else (y,)
        fitted, times = timed(repeats, encoder.fit, X, *labels)
        yield row("fit", name, times, extra_memory(encoder.fit, X, *labels), n_learnt(fitted))
        if name == OURS:
            yield row("transform", FIRST, timed(1, encoder.transform, new)[1], np.nan, {})
        found, times = timed(repeats, encoder.transform, new)
        yield row("transform", name, times, extra_memory(encoder.transform, new), n_unseen(encoder, found))
        yield row("one row", name, timed(20 * repeats, encoder.transform, one)[1], np.nan, {})
        if name != ORDINAL:
            trained, times = timed(repeats, encoder.fit_transform, X, y)
            model = LogisticRegression().fit(log_odds(encoder, trained), y)
            found = encoder.transform(new)  # by the codebook of these folds
            auc = roc_auc_score(new_y, model.decision_function(log_odds(encoder, found)))
            memory = extra_memory(encoder.fit_transform, X, y)
            yield row("fit_transform", name, times, memory, {"auc": float(auc)})


def ordinary(kind: str, small: bool) -> Iterator[Row]:
    """Yield a row for each size, step and method on ordinary frames."""
    for n_rows in ORDINARY[: 2 if small else None]:
        numbers, y = numbered(n_rows, 0, 1, N_ORDINARY)
        X = numbers.apply(KINDS[kind])
        encoders = {TARGET: TargetEncoder(target_type="binary"), OURS: vf.VocabularyCompressor(BUDGET)}
        for step in ("fit", "fit_transform", "transform"):
            for name, encoder in encoders.items():
                given = (X,) if step == "transform" else (X, y)
                getattr(encoder, step)(*given)
                times = cpu_timed(1 if small else 5, getattr(encoder, step), *given)[1]
                about = {"step": f"{step}, ordinary", "values": kind, "n_rows": n_rows, "method": name}
                yield about | times


def shares(rows: Sequence[Row]) -> list[Row]:
    """Return how long we take on ordinary frames, for one that TargetEncoder takes."""
    found: dict[tuple[str, str, int], dict[str, float]] = {}
    for row in rows:
        if row["step"].endswith("ordinary"):
            key = row["step"], row["values"], row["n_rows"]
            found.setdefault(key, {})[row["method"]] = row["seconds"]
    return [
        {"step": step, "values": values, "n_rows": n_rows, "ours": of[OURS], "rival": of[TARGET]}
        for (step, values, n_rows), of in found.items()
    ]


_SHARES: dict[str, Cell] = {
    "step": number("step", ""),
    "values": number("values", ""),
    "rows": number("n_rows", ","),
    f"{OURS} (CPU s)": number("ours", ".4f"),
    f"{TARGET} (CPU s)": number("rival", ".4f"),
    "ratio": lambda row: f"{row['ours'] / row['rival']:.2f}",
}


def ratios(rows: Sequence[Row], step: str, rival: str, own: str = OURS) -> list[tuple[str, float]]:
    """Return for each kind of values how many times as long as ours a rival takes."""

    def seconds(method: str) -> dict[str, float]:
        return {row["values"]: row["seconds"] for row in rows if (row["step"], row["method"]) == (step, method)}

    ours = seconds(own)
    return [(kind, theirs / ours[kind]) for kind, theirs in seconds(rival).items()]


def headlines(rows: Sequence[Row]) -> str:
    """Return the table for the project's README."""

    def spread(step: str, rival: str, own: str = OURS) -> str:
        found = ", ".join(f"{ratio:.1f} ({kind})" for kind, ratio in ratios(rows, step, rival, own))
        return f"takes {found} times as long"

    one = max(row["seconds"] for row in rows if (row["step"], row["method"]) == ("one row", OURS))
    lines = [
        (f"`{rival}.{step}`, relative to ours", spread(step, rival))
        for step, rival in (
            ("fit", TARGET),
            ("fit_transform", TARGET),
            ("transform", TARGET),
            ("transform", ORDINAL),
        )
    ]
    first = spread("transform", ORDINAL, FIRST)
    lines.append((f"`{ORDINAL}.transform`, relative to our first one, which loads the codebook", first))
    for step in ("fit", "transform", "fit_transform"):
        memory = {
            row["method"]: row["extra_mb"] for row in rows if (row["step"], row["values"]) == (step, "text")
        }
        rival = ORDINAL if step == "transform" else TARGET
        lines.append(
            (
                f"memory of `{step}` on top of the frame, text",
                f"{memory[OURS]:,.0f} MB; {rival} {memory[rival]:,.0f} MB",
            )
        )
    return figures([*lines, ("`transform` of a frame with one row, at most", f"{one * 1000:.1f} ms")])


_CELLS: dict[str, Cell] = {
    "step": number("step", ""),
    "values": number("values", ""),
    "method": number("method", ""),
    "rows": number("n_rows", ","),
    **(TIMES | {"seconds (least)": number("seconds", ".4f"), "slowest": number("slowest", ".4f")}),
    "memory beyond the frame (MB)": lambda row: (
        f"{row['extra_mb']:,.0f}" if row["extra_mb"] == row["extra_mb"] else ""
    ),
    "values learnt": number("n_values", ","),
    "unseen": number("n_unseen", ","),
    "AUC": number("auc", ".4f"),
}


def write_report(folder: Path, rows: Sequence[Row], about: Sequence[Row]) -> None:
    """Write the tables of a run."""
    texts = ["# The scikit-learn door\n", *(f"- {fact['fact']}: {fact['is']}" for fact in about), ""]
    for step in ("fit", "fit_transform", "transform", "one row"):
        chosen = [row for row in rows if row["step"] == step]
        cells = {name: cell for name, cell in _CELLS.items() if any(map(cell, chosen))}
        texts += [f"## {step}\n", table(chosen, cells)]
        texts += [
            f"{rival} takes {ratio:.2f} times as long ({kind}).\n"
            for rival in (TARGET, ORDINAL)
            for kind, ratio in ratios(rows, step, rival)
        ]
    if found := shares(rows):
        texts += ["## Ordinary frames, 16 columns\n", table(found, _SHARES)]
    (folder / "README.md").write_text("\n".join(texts).rstrip() + "\n", encoding="utf-8")


def main() -> None:
    """Measure all kinds of values, print and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--kinds", default=",".join(KINDS), help="comma-separated (default: all)")
    options = parser.parse_args()
    if options.report:
        run = newest("estimator")
        rows = read_csv(run / "raw.csv")
        write_report(run, rows, read_csv(run / "about.csv"))
        update_readme("estimator", run.name, headlines(rows))
        return
    warnings.simplefilter("ignore")
    for kind in KINDS:
        list(measured(kind, small=True))  # compile first
    rows = []
    for kind in options.kinds.split(","):
        for row in chain(ordinary(kind, options.small), measured(kind, options.small)):
            rows.append(row)
            show([row])
    print(table(shares(rows), _SHARES))
    if not options.small:
        about = facts(PACKAGES) | {"command": " ".join(["python -m benchmarks.speed.estimator", *sys.argv[1:]])}
        write_run(RUNS / f"{about['date']}-estimator", rows, about)


if __name__ == "__main__":
    main()
