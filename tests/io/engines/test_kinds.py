"""Kinds of values: what one kind holds of another, in Arrow and in SQL."""

import itertools

import numpy as np
import pyarrow as pa
import pytest

from vocabfold.io.engines.duckdb import Engine
from vocabfold.io.engines.kinds import KINDS, as_kind, converted

NUMBERS = {
    "integer": [0, -1, 2**53, 2**53 + 1, 2**62 + 1, 2**63 - 1, -(2**63), 2**63 - 1024, 2**63 - 512],
    "unsigned": [0, 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64 - 2048],
    "float": [0.0, 1.5, -1.0, 2.0**53, 2.0**62, 2.0**63, -(2.0**63), 2.0**63 - 1024, 2.0**64, 2.0**64 - 2048]
    + [5e-324, 1e300, -1e300, float("inf"), -float("inf")],
}


@pytest.mark.parametrize(("found", "kind"), [*itertools.product(NUMBERS, NUMBERS)])
def test_a_kind_holds_the_same_numbers_of_another_in_arrow_and_in_sql(found, kind):
    numbers = pa.array([None, *NUMBERS[found]], KINDS[found].arrow)
    same, foreign = as_kind(numbers, kind)
    is_held = np.ones(len(numbers), bool)
    is_held[foreign] = False
    value, held = converted("value", found, kind)
    with Engine() as engine:
        table = engine.table(pa.table({"value": numbers}))
        rows = engine.run(f"SELECT {value} AS value, {held} AS is_held FROM {table}")
    assert rows["is_held"].to_pylist() == is_held.tolist()
    assert rows["value"].filter(is_held).to_pylist() == same.filter(is_held).to_pylist()
