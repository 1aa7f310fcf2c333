"""Hostile names and values on Spark."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import vocabfold as vf
from harden.lib import corpus
from harden.lib.hostile.cases import LABEL, VALUE, Tally, rows_of
from harden.lib.hostile.judge import EXACT, check, judged, same

_AT_ONCE = 60  # columns that are transformed together


def on_spark(tally: Tally, session: Any) -> None:
    """Try the same on Spark: counts, codebook and ids by plain dicts."""
    from pyspark.sql import types

    spark_types = {
        "string": types.StringType(),
        "int64": types.LongType(),
        "double": types.DoubleType(),
        "bool": types.BooleanType(),
        "date32": types.DateType(),
    }
    for kind, type in spark_types.items():

        def case(values: Sequence[Any], folder: Path, kind: str = kind, type: Any = type) -> None:
            table = rows_of([*values, *(["plain"] if kind == "string" else [])], kind)
            name, label = "value '\"`;--<b>\u202e", "neg"
            schema = types.StructType(
                [types.StructField(name, type), types.StructField(label, types.LongType())]
            )
            columns = [table[VALUE].to_pylist(), table[LABEL].to_pylist()]
            frame = session.createDataFrame(list(zip(*columns, strict=True)), schema)
            counts = vf.count(frame, label, [name])
            neg, pos = Counter[Any](), Counter[Any]()
            for value, target in zip(*columns, strict=True):
                (pos if target else neg)[judged(value, kind, "Spark")] += 1
            expected = {value: (neg[value], pos[value]) for value in neg | pos}
            same(
                {r["value"]: (r["neg"], r["pos"]) for r in counts[name].to_pylist()},
                expected,
                "counts on Spark",
            )
            book = vf.fit(counts, 9999, **EXACT)
            book.save(folder / "book")
            loaded = vf.load(folder / "book")
            saved = loaded[name].to_pylist()
            same({r["value"]: (r["neg"], r["pos"]) for r in saved}, expected, "what Spark saved")
            mapping = {r["value"]: r["id"] for r in saved}
            check(len(set(mapping.values())) == len(mapping), "an id for every value")
            numbered = session.createDataFrame(
                [(v, i) for i, v in enumerate(columns[0])],
                types.StructType([types.StructField(name, type), types.StructField("i", types.LongType())]),
            )
            found = {row["i"]: row[name] for row in loaded.transform(numbered).collect()}
            wanted = {i: mapping[judged(value, kind, "Spark")] for i, value in enumerate(columns[0])}
            check(found == wanted, "ids on Spark", kind)

        tally.all(f"Spark {kind}", [*corpus.VALUES[kind], None], case)
    names = {name.lower(): name for name in corpus.TEXTS}

    def named(chosen: Sequence[str], folder: Path) -> None:
        columns = {name: [f"{i}-{j % (2 + i % 2)}" for j in range(6)] for i, name in enumerate(chosen)}
        rows = list(zip(*columns.values(), [0, 1] * 3, strict=True))
        fields = [types.StructField(name, types.StringType()) for name in chosen]
        schema = types.StructType([*fields, types.StructField("the label", types.LongType())])
        frame = session.createDataFrame(rows, schema)
        book = vf.fit(vf.count(frame, "the label", list(chosen)), 9999, **EXACT)
        book.save(folder / "book")
        loaded = vf.load(folder / "book")
        check(list(loaded.features) == list(chosen), "names on Spark")
        found = loaded.transform(frame).collect()
        for i, (name, values) in enumerate(columns.items()):
            mapping = {row["value"]: row["id"] for row in loaded[name].to_pylist()}
            wanted = Counter((mapping[value], j % 2) for j, value in enumerate(values))
            check(Counter((row[i], row[-1]) for row in found) == wanted, "ids of a name on Spark", name)

    # Not all at once: for each column that is looked up, Spark keeps a table on every worker.
    for first in range(0, len(names), _AT_ONCE):
        tally.all("Spark name", list(names.values())[first : first + _AT_ONCE], named)
