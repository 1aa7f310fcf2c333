from decimal import Decimal

import numpy as np
import pytest

import vocabfold as vf
from vocabfold.folding.arrays import MAX_ROWS, counts

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("neg", "pos", "message"),
    [
        (
            [1, -2, -3],
            [1, 1, 1],
            r"neg\[1\] is -2; counts must be whole numbers, 0 or more \(2 entries are not\)\.$",
        ),
        ([1], [-1], r"pos\[0\] is -1; counts must be whole numbers, 0 or more\.$"),
        ([1.5], [1], r"neg\[0\] is 1\.5; counts must be whole"),
        ([1, NAN], [1, 1], r"neg\[1\] is nan; counts must be whole"),
        ([1], [INF], r"pos\[0\] is inf; counts must be whole"),
        ([None, 1], [1, 1], r"neg\[0\] is None; counts must be whole"),
        ([Decimal("2.5")], [1], r"neg\[0\] is 2\.5; counts must be whole"),
        ([Decimal("NaN"), "1"], [1, 1], r"neg\[0\] is NaN; counts must be whole .* \(2 entries are not\)"),
        (["a"], [1], r"neg must hold whole numbers, got text\.$"),
        ([1], [1j], r"pos must hold whole numbers, got complex128\.$"),
        ([[1, 2]], [1], r"neg must be a list or flat array of counts, got one of shape \(1, 2\)\.$"),
        ([[1, 2], [3]], [1], r"neg must be a flat array, got nested ones of unequal length\.$"),
        (3, [1], r"neg must be a list or flat array of counts, got int\.$"),
        (None, [1], r"neg must be a list or flat array of counts, got NoneType\.$"),
        ((n for n in [1, 2]), [1, 2], r"neg must be a list or flat array of counts, got generator\.$"),
        (np.ma.array([1, 2], mask=[0, 1]), [1, 2], r"neg has masked entries; fill or drop them first\.$"),
        ([1, 2], [1], r"must have one entry per value each, got 2 and 1 entries\.$"),
        ([], [], r"neg and pos are empty; at least one value is needed\.$"),
        ([0, 0], [0, 0], r"all counts are zero; at least one row is needed\.$"),
        ([2**53], [1], r"the counts sum to 9,007,199,254,740,993; at most 2\*\*53"),
        (
            [2**53] * 3000,
            [2**53] * 3000,
            r"the counts sum to 54,043,195,528,445,952,000; .* so scale all counts down and round them first",
        ),
        ([2**64 - 1], [1], r"neg holds a count of 18,446,744,073,709,551,615; at most"),
        ([2**70], [1], r"neg holds a count of 1,180,591,620,717,411,303,424; at most"),
        ([1e300], [1], r"neg holds a count of 1,000,000,.*; at most"),
    ],
)
def test_counts_that_cannot_be_used_are_refused(neg, pos, message):
    with pytest.raises(vf.InputError, match=message):
        vf.fold(neg, pos, 2)
    with pytest.raises(vf.InputError, match=message):
        vf.curve(neg, pos)


@pytest.mark.parametrize("size", [0, -3, np.int64(0)])
def test_sizes_below_one_are_refused(size):
    with pytest.raises(vf.InputError, match=f"^size must be at least 1, got {size}\\.$"):
        vf.fold([1, 2], [2, 1], size)
    with pytest.raises(vf.InputError, match=f"^max_size must be at least 1, got {size}\\.$"):
        vf.curve([1, 2], [2, 1], size)


def test_a_curve_of_absurd_length_is_refused():
    with pytest.raises(vf.InputError, match=r"^max_size must be at most 100,000,000, got 1,000,000,000,000\.$"):
        vf.curve([1, 2], [2, 1], 10**12)


@pytest.mark.parametrize("size", [2.0, "3", None, True, NAN])
def test_sizes_that_are_no_whole_numbers_are_refused(size):
    with pytest.raises(vf.InputError, match=r"^size must be a whole number, got .*\.$"):
        vf.fold([1, 2], [2, 1], size)


def test_an_unknown_method_or_allocation_is_refused_with_the_list():
    with pytest.raises(
        vf.InputError, match=r"^method must be one of 'exact', 'dynamic', .*'hashing', got 'magic'\.$"
    ):
        vf.fold([1, 2], [2, 1], 2, method="magic")
    with pytest.raises(
        vf.InputError, match=r"^method must be one of 'exact', 'dynamic', .*'hashing', got 3\.$"
    ):
        vf.fold_table({"a": ([1, 2], [2, 1])}, 2, method=3)
    with pytest.raises(
        vf.InputError, match=r"^allocation must be one of 'joint', 'uniform', 'information', got 'x'\.$"
    ):
        vf.fold_table({"a": ([1, 2], [2, 1])}, 2, allocation="x")


def test_all_bad_columns_are_named_together():
    columns = {"a": ([1], [-1]), "b": 3, "c": ([1, 2], [1, 1]), 'say "d"': ([1], [1, 2])}
    with pytest.raises(vf.InputError) as caught:
        vf.fold_table(columns, 9)
    text = str(caught.value)
    assert "column 'a': pos[0] is -1" in text
    assert "column 'b': counts must be a pair (neg, pos), got int." in text
    assert "column 'say \"d\"': neg and pos must have one entry per value each, got 1 and 2 entries." in text
    assert "'c'" not in text


@pytest.mark.parametrize(
    "pair", [([1], [1], [1]), {"neg": [1], "pos": [2]}, "xy", np.ones((5, 2), int), [1], None]
)
def test_counts_of_a_column_must_be_a_pair(pair):
    with pytest.raises(
        vf.InputError, match=r"^column 'a': counts must be a pair \(neg, pos\), got \w+( of \d)?\.$"
    ):
        vf.fold_table({"a": pair}, 9)


def test_a_pair_of_counts_may_be_an_array_of_two_rows():
    assert vf.fold_table({"a": np.array([NEG, POS])}, 2)["a"].ids.tolist() == [0, 0, 1, 0, 0]


def test_many_bad_columns_do_not_flood_the_screen():
    with pytest.raises(vf.InputError, match=r"And 80 more columns cannot be used\.$"):
        vf.fold_table({f"c{i}": ([1], [-1]) for i in range(100)}, 200)


def test_a_long_wrong_argument_is_shown_cut_off():
    with pytest.raises(
        vf.InputError, match=r"^size must be a whole number, got \[0, 1, 2, 3, 4, 5, \.\.\.\]\.$"
    ):
        vf.fold([1, 2], [2, 1], list(range(1000)))


@pytest.mark.parametrize(("columns", "given"), [({}, "an empty one"), ([1], "list"), (None, "NoneType")])
def test_columns_must_be_a_mapping_with_something_in_it(columns, given):
    with pytest.raises(vf.InputError, match=rf"^columns must be a mapping from names .*, got {given}\.$"):
        vf.fold_table(columns, 9)


def test_a_budget_below_the_number_of_columns_is_refused():
    columns = {"a": ([1, 2], [2, 1]), "b": ([1, 2], [2, 1])}
    with pytest.raises(vf.InputError, match=r"^budget must be at least 2 \(one id per column\), got 1\.$"):
        vf.fold_table(columns, 1)


def read_only(array):
    array.flags.writeable = False
    return array


def unaligned(array):
    buffer = np.zeros(array.nbytes + 1, np.uint8)
    view = buffer[1:].view(array.dtype)
    view[:] = array
    return view


NEG, POS = [90, 45, 10, 70, 0], [10, 5, 30, 30, 0]


@pytest.mark.parametrize(
    "convert",
    [
        list,
        tuple,
        *(
            lambda a, kind=kind: np.array(a, kind)
            for kind in ("i1", "u1", "i2", "u4", "i4", ">i8", "u8", "f2", "f4", "f8", "O")
        ),
        lambda a: [Decimal(count) for count in a],
        lambda a: read_only(np.array(a)),
        lambda a: unaligned(np.array(a)),
        lambda a: np.repeat(a, 3)[::3],
        lambda a: np.array(a)[::-1][::-1],
        lambda a: np.asfortranarray(np.array([a, a]).T)[:, 1],
    ],
)
def test_all_kinds_of_whole_numbers_are_read(convert):
    for side, expected in zip(counts(convert(NEG), convert(POS)), (NEG, POS), strict=True):
        assert side.dtype == np.int64
        assert side.flags.c_contiguous
        assert side.flags.aligned
        assert side.tolist() == expected
    assert vf.fold(convert(NEG), convert(POS), 2).ids.tolist() == [0, 0, 1, 0, 0]


def test_a_total_of_exactly_2_to_the_53_is_fine():
    half = MAX_ROWS // 2
    fold = vf.fold([half - 1, 1], [0, half], 2)
    assert fold.size == 2
    assert fold.loss == 0
