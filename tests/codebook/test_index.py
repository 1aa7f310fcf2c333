"""The table and the binary search find what a dict finds."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vocabfold.codebook import _index_kernels
from vocabfold.codebook.index import Index
from vocabfold.io.engines.kinds import KINDS

VALUES = {
    "text": st.text(st.characters(codec="utf-8"), max_size=20),
    "integer": st.integers(-(2**63), 2**63 - 1),
    "unsigned": st.integers(0, 2**64 - 1),
    "float": st.floats(allow_nan=False),
    "boolean": st.booleans(),
    "date": st.dates(),
    "timestamp": st.datetimes(),
}


def index_of(kind, values):
    ordered = sorted(set(values), key=lambda value: value.encode() if kind == "text" else value)
    array = pa.chunked_array([pa.array([None, *ordered], KINDS[kind].arrow)])
    return Index(array, np.arange(len(ordered) + 1, dtype=np.int32)), {None: 0} | {
        value: i for i, value in enumerate(ordered, start=1)
    }


@pytest.mark.parametrize("kind", VALUES)
@given(data=st.data())
def test_every_way_finds_what_a_dict_finds(kind, data):
    present = data.draw(st.lists(VALUES[kind], max_size=40))
    wanted = data.draw(st.lists(st.one_of(st.none(), VALUES[kind], st.sampled_from([*present, None]))))
    index, by_hand = index_of(kind, present)
    expected = [by_hand.get(value, -1) for value in wanted]
    array = pa.array(wanted, KINDS[kind].arrow)
    assert index.is_sorted
    assert index.find(array).tolist() == expected
    index.prepare(10**6)
    assert index._slots.size
    assert index.find(array).tolist() == expected
    assert index.find(array.slice(1)).tolist() == expected[1:]


def test_minus_zero_is_zero():
    index, _ = index_of("float", [0.0, 1.0])
    for n_wanted in (0, 100):
        index.prepare(n_wanted)
        assert index.find(pa.array([-0.0, 0.0])).tolist() == [1, 1]


def test_no_table_is_built_for_a_few_values():
    index, _ = index_of("integer", range(1000))
    index.prepare(100)
    assert index._slots is None
    index.prepare(100)
    assert index._slots is not None


def same_slot(n_keys):
    """Numbers whose hashes end alike: found by undoing the two multiplications of the hash."""
    odd, mix = (pow(int(factor), -1, 2**64) for factor in (_index_kernels._ODD, _index_kernels._MIX))
    keys = []
    for i in range(n_keys):
        hash = (i << 40) | 5
        hash ^= hash >> 29
        hash ^= hash >> 58
        hash = hash * mix % 2**64
        hash ^= hash >> 32
        keys.append(hash * odd % 2**64)
    return np.sort(np.array(keys, np.uint64))


@pytest.mark.jit
def test_keys_chosen_to_collide_get_no_table_and_are_found_all_the_same():
    keys = same_slot(5000)
    assert _index_kernels.tabulate_numbers(keys[:500]).size
    assert _index_kernels.tabulate_numbers(keys).size == 0
    index = Index(pa.chunked_array([pa.array(keys)]), np.arange(5000, dtype=np.int32))
    index.prepare(10**6)
    assert index.find(pa.array(keys[::7])).tolist() == list(range(0, 5000, 7))
    assert index.find(pa.array([1, 2], pa.uint64())).tolist() == [-1, -1]
