"""Values and names of all kinds through one door, to counts and a codebook and back."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import vocabfold as vf
from harden.lib import corpus
from harden.lib.hostile.cases import LABEL, VALUE, Tally, of_objects, rows_of, written
from harden.lib.hostile.doors import DOORS, REFUSED
from harden.lib.hostile.judge import EXACT, at_the_door, check, round_trip


def values_in(door: str, tally: Tally, small: bool) -> None:
    """Try all values of all kinds in one door."""

    def case(values: Sequence[Any], folder: Path) -> None:
        type = kind
        # Alone, a value has something beside it that is no surprise.
        round_trip(door, rows_of([*values, *plain], type), folder, [VALUE], {"label": LABEL})

    for kind, values in corpus.VALUES.items():
        plain = ["plain"] if kind == "string" else []
        chosen = [*values, None] if kind == "string" or door != "pandas" else values
        if not small or kind == "string":
            tally.all(kind, chosen[:: 5 if small else 1], case, REFUSED.get((door, kind), ()))
    kind, plain = "string", ["plain"]
    if not small:
        tally.all("megabyte", [corpus.MEGABYTE, corpus.MEGABYTE[:-1] + "n"], case)


def surrogates_in(door: str, tally: Tally) -> None:
    """Try texts that are no UTF-8 as value, feature and label: refused, where a door can hold them at all."""
    make: dict[str, Callable[[str, str, str, Path], Any]] = {
        "pandas": lambda value, feature, label, _: of_objects({feature: [value, "b"], label: [0, 1]}),
        "CSV": lambda value, feature, label, folder: written(
            folder / "x.csv", f"{feature},{label}\n{value},0\nb,1\n"
        ),
        "TSV": lambda value, feature, label, folder: written(
            folder / "x.tsv", f"{feature}\t{label}\n{value}\t0\nb\t1\n"
        ),
        "JSON lines": lambda value, feature, label, folder: written(
            folder / "x.jsonl", "\n".join(json.dumps({feature: v, label: y}) for v, y in [(value, 0), ("b", 1)])
        ),
    }
    if door not in make:
        return
    for text in ["plain", *corpus.SURROGATES]:
        for words in ((text, VALUE, LABEL), ("a", text, LABEL), ("a", VALUE, text)):

            def case(folder: Path, words: tuple[str, str, str] = words) -> None:
                _, feature, label = words
                with at_the_door():
                    vf.count(make[door](*words, folder), label, [feature])

            tally.run(f"{door} surrogate {words!r}", case, refused=text in corpus.SURROGATES)


def names_in(door: str, tally: Tally, small: bool) -> None:
    """Try all names as features, all at once; then each as label, weight, fold column and feature."""
    firsts: dict[str, str] = {}
    for name in corpus.TEXTS:
        firsts.setdefault(name.lower(), name)
    names = [*firsts.values(), "long name " + "x" * 100_000][:: 40 if small else 1]
    refused = REFUSED.get((door, "name"), [])

    def features(chosen: Sequence[str], folder: Path) -> None:
        columns = {name: [f"{i % 5}-{j % (2 + i % 2)}" for j in range(12)] for i, name in enumerate(chosen)}
        table = pa.table(columns | {"the label": [j % 2 for j in range(12)]})
        round_trip(door, table, folder, list(chosen), {"label": "the label"})

    def roles(chosen: Sequence[str], folder: Path) -> None:
        label, weight, part, feature = chosen
        columns = {label: ["no", label, label] * 4, weight: [1, 2, 3, 4] * 3, part: [0, 1, 2] * 4}
        table = pa.table(columns | {feature: ["a", "b", "c", "a"] * 3})
        data = DOORS[door](table, folder)
        with at_the_door():
            counts = vf.count(data, label, [feature], weight=weight, fold_column=part, positive=label)
        found = Counter[Any]()
        for row in counts[feature].to_pylist():
            found[row["value"], "neg"] += row["neg"]
            found[row["value"], "pos"] += row["pos"]
        wanted = Counter[Any]()
        for i, value in enumerate(table[feature].to_pylist()):
            wanted[value, "pos" if i % 3 else "neg"] += 1 + i % 4
        check(found == wanted, "counts by role", chosen)
        vf.fit(counts, 9, **EXACT).save(folder / "book")
        book = vf.load(folder / "book")
        check((book.label, book.positive) == (label, label), "label and positive", book.label, book.positive)
        check((counts.fold_column, book.features) == (part, (feature,)), "fold column", counts.fold_column)

    tally.all("feature", names, features, refused)
    # Each name has every role once; those that are refused have plain ones beside them.
    good = [name for name in names if name not in refused]
    for i in range(0, len(good), 3 if small else 1 if door in ("Parquet", "CSV") else 4):
        four = [good[(i + j) % len(good)] for j in range(4)]
        tally.run(f"roles {four!r:.60}", lambda folder, four=four: roles(four, folder))
    for name in (name for name in names if name in refused):
        for i in range(4):
            four = ["plain 1", "plain 2", "plain 3"]
            four.insert(i, name)
            tally.run(f"role {i} {name!r}", lambda folder, four=four: roles(four, folder), refused=True)
    for twin in (["Site", "site"], ["caf\u00e9", "cafe\u0301"], ["s\u0130te", "site"]):
        is_one = twin[0].lower() == twin[1].lower()  # to SQL, so that they are refused
        tally.run(f"twins {twin!r}", lambda folder, twin=twin: features(twin, folder), refused=is_one)
