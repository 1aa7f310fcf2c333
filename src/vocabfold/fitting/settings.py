"""The options of `fit`: what they may be, and what they are if nobody says it."""

from __future__ import annotations

import math
import warnings
from numbers import Real
from typing import Any

from vocabfold.codebook.codebook import UNSEEN
from vocabfold.errors import InputError
from vocabfold.folding.allocation import BY_VALUE, METHODS, OPTIMAL, Tuning, check_method
from vocabfold.support import checks

AUTO = "auto"
AIMS = ("model", "information")
_SAFE_COUNT = 20  # rows, below which the id of a value would tell a model the labels of these rows


def defaults_of(aim: str) -> dict[str, Any]:
    """Return what depends on the aim if nobody says it."""
    if aim == "model":
        return {"smoothing": AUTO, "min_count": _SAFE_COUNT}
    return {"smoothing": 0, "min_count": 1}


def _is_strength(smoothing: object) -> bool:
    """Tell whether something is a number of rows, and none that is too large for a double."""
    if not isinstance(smoothing, Real) or isinstance(smoothing, bool):
        return False
    try:
        return 0 <= float(smoothing) < math.inf
    except OverflowError:
        return False


def check_options(
    budget: int | str,
    *,
    aim: str,
    method: str,
    allocation: str,
    smoothing: float | str | None,
    min_count: int | None,
    dedicated_min: int,
    shared_ids: int,
    unseen: str,
    epsilon: float,
    shards: int,
    seed: int,
) -> None:
    """Refuse options that cannot be used, before anything is counted."""
    checks.choice("aim", aim, AIMS)
    checks.choice("method", method, METHODS)
    checks.choice("unseen", unseen, UNSEEN)
    Tuning(epsilon, shards, seed)
    if method in BY_VALUE and aim == "model":
        also = " and allocation='uniform'" if method == "hashing" and allocation == "joint" else ""
        raise InputError(
            f"method {method!r} does not fold by rate, which aim='model' does with rare values; give "
            f"aim='information'{also}."
        )
    if budget == AUTO and aim != "model":
        raise InputError("budget='auto' is for aim='model'; give a number of ids.")
    if budget == AUTO and method not in OPTIMAL:
        raise InputError("budget='auto' is for method='exact'; give that method, or a number of ids.")
    check_method(method, allocation)
    if method in BY_VALUE and smoothing not in (None, 0):
        raise InputError(f"method {method!r} takes counts as they are; leave smoothing out.")
    if budget != AUTO:
        if isinstance(budget, str):
            raise InputError(f"budget must be a number of ids, or 'auto', got {budget!r}.")
        checks.at_least("budget", budget, 1)
    if not (smoothing in (None, AUTO) or _is_strength(smoothing)):
        raise InputError(f"smoothing must be 'auto' or a number of rows, 0 or more, got {smoothing!r}.")
    if min_count is not None:
        checks.at_least("min_count", min_count, 1)
    checks.at_least("dedicated_min", dedicated_min, 1)
    checks.at_least("shared_ids", shared_ids, 1)


def check_training(unseen: str, min_count: int, method: str) -> None:
    """Refuse options with which the rows that are fitted cannot be encoded; warn of ids that tell labels."""
    if method == "selection":
        warnings.warn(
            "method 'selection' chooses values by the labels of these rows, so that the id of a rare one tells "
            "them even here; use another method, or fit on older rows.",
            stacklevel=3,
        )
    if unseen == "error" and min_count > 1:
        raise InputError("unseen='error' refuses pooled values, which these rows would have; give min_count=1.")
