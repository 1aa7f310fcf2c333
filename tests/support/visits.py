"""Rows with hostile values and names, for reports."""

import numpy as np
import pyarrow as pa

HOSTILE = [
    "<script>window.hacked = 1</script>",
    "</script><img src=x onerror='window.hacked = 2'>",
    "\"quotes' and `ticks` {{ 7 * 7 }} ${7 * 7}",
    "\u202eright to left\u202c \u05e9\u05dc\u05d5\u05dd",
    "long " + "x" * 10_000,
    "line\nbreak\ttab\x00nul\x1b[31m",
    "<!-- comment",
    "javascript:window.hacked=3",
    "",
]
NAME = "<b onmouseover=window.hacked=4>site</b>"
LABEL = "click <i>&amp;"


def visits(n_rows=4000, seed=0):
    """Return rows of a hostile column, one with many values, and one of numbers."""
    rng = np.random.default_rng(seed)
    sites = [*HOSTILE, *(f"site{i}" for i in range(60))]
    site = rng.zipf(1.3, n_rows) % len(sites)
    user = rng.zipf(1.2, n_rows) % 900
    day = rng.integers(0, 5, n_rows)
    rate = 0.1 + 0.3 * (site % 4 == 0) + 0.2 * (user % 5 == 1) + 0.05 * day
    return pa.table(
        {
            NAME: [sites[i] if i else None for i in site],
            "user": [f"u{i}" for i in user],
            "day": day,
            LABEL: (rng.random(n_rows) < rate).astype(int),
        }
    )


FEATURES = [NAME, "user", "day"]
