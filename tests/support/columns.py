"""Arrow columns of every kind, with the values that are hard to compare, for laws over what reads them."""

from contextlib import contextmanager
from unittest.mock import patch

import pyarrow as pa
from hypothesis import strategies as st

from vocabfold.counts import in_memory

_NAN, _INF = float("nan"), float("inf")
_FLOATS = [0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 0.1, 1e300, _INF, -_INF, _NAN]
_INSTANTS = st.integers(-(2**40), 2**40)
_VALUES = {
    pa.string(): st.text(st.characters(codec="utf-8"), max_size=3)
    | st.sampled_from(["", "\0", "\0a", "é", "💥", "nan"]),
    pa.large_string(): st.text("a\0é\uffff💥", max_size=2),
    pa.int64(): st.sampled_from([-(2**63), -(2**63) + 1, -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 1]),
    pa.uint64(): st.sampled_from([0, 1, 2**63 - 1, 2**63, 2**64 - 1]),
    pa.int8(): st.integers(-128, 127),
    pa.uint16(): st.integers(0, 4),
    pa.float64(): st.sampled_from(_FLOATS),
    pa.float32(): st.sampled_from([0.0, -0.0, 0.5, -2.0, _INF, -_INF, _NAN]),
    pa.bool_(): st.booleans(),
    pa.date32(): st.integers(-700_000, 700_000),
    pa.date64(): st.integers(-99, 99).map(lambda day: day * 86_400_000),
    pa.timestamp("s"): _INSTANTS.map(lambda n: n // 1000),
    pa.timestamp("ms"): _INSTANTS,
    pa.timestamp("us"): _INSTANTS,
    pa.timestamp("ns"): _INSTANTS.map(lambda n: n * 1000),
    pa.null(): st.none(),
}


@st.composite
def columns(draw, n_rows):
    """Draw a column: of one type, perhaps as a dictionary and in several chunks, with missing values."""
    type = draw(st.sampled_from(list(_VALUES)))
    words = draw(st.lists(_VALUES[type] | st.none(), min_size=1, max_size=6))
    codes = draw(st.lists(st.integers(0, len(words) - 1), min_size=n_rows, max_size=n_rows))
    cut = draw(st.integers(0, n_rows))
    if draw(st.booleans()) and type != pa.null():
        # The words of a dictionary may come twice, be missing, or be in no row.
        parts = [
            pa.DictionaryArray.from_arrays(pa.array(part, pa.int32()), pa.array(words, type))
            for part in (codes[:cut], codes[cut:])
        ]
    else:
        parts = [pa.array([words[code] for code in part], type) for part in (codes[:cut], codes[cut:])]
    return pa.chunked_array(parts)


@st.composite
def tables(draw, n_columns=2):
    """Draw a table of such columns, beside a label `y`, weights `w` and folds `f`, and options to count it."""
    n_rows = draw(st.integers(4, 40))

    def of_rows(values):
        return draw(st.lists(values, min_size=n_rows, max_size=n_rows))

    found = {f"x{i}": draw(columns(n_rows)) for i in range(n_columns)}
    found["y"] = pa.array([0, 1, 0, 1, *of_rows(st.sampled_from([0, 1, 1, None]))[4:]])
    found["w"] = pa.array(
        [
            1,
            2,
            3,
            1,
            *of_rows(draw(st.sampled_from([st.integers(0, 3), st.sampled_from([0, 0.3, 1, 1e-9])])))[4:],
        ],
        pa.float64(),
    )
    found["f"] = pa.array([0, 1, 1, 0, *of_rows(st.integers(0, 2))[4:]])
    options = draw(
        st.sampled_from([{}, {"folds": 3}, {"folds": 3, "fold_column": "f"}, {"folds": 2, "fold_seed": 5}])
    )
    weight = draw(st.sampled_from([{}, {"weight": "w"}]))
    return pa.table(found), options | weight | {"drop_null_labels": True, "features": [*found][:n_columns]}


@contextmanager
def queries():
    """Count, fit and encode with queries, as what does not fit in memory."""
    with (
        patch.object(in_memory, "is_small", lambda *_: False),
        patch("vocabfold.counts.frames.is_small", lambda *_: False),
    ):
        yield
