"""A frame of pandas with its labels, for estimators."""

import numpy as np
import pandas as pd
import pytest

SAME_ROWS = "X looks like the training data"
may_be_same_rows = pytest.mark.filterwarnings(f"ignore:{SAME_ROWS}")


def rows(n_rows=4000, seed=0):
    """Columns with infrequent values, a frame and the label; rates differ between values."""
    rng = np.random.default_rng(seed)
    site = np.minimum(rng.pareto(0.8, n_rows) * 5, 900).astype(int)
    hour = rng.integers(0, 24, n_rows)
    device = rng.choice(["phone", "tablet", None], n_rows, p=[0.6, 0.3, 0.1])
    rate = 0.1 + 0.6 * ((site * 7919) % 10) / 10 + 0.2 * (device == "phone")
    frame = pd.DataFrame({"site": [f"s{i}" for i in site], "hour": hour, "device": device})
    return frame, (rng.random(n_rows) < rate).astype(int)


X, Y = rows()
NEW, _ = rows(500, seed=1)
EVEN, ODD = np.arange(0, 4000, 2), np.arange(1, 4000, 2)
