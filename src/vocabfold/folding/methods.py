"""The names of methods and allocations, and what may be asked of them: no solver is imported to know them."""

from __future__ import annotations

from numbers import Real
from typing import Any

from vocabfold.errors import InputError, argument
from vocabfold.support import checks

OPTIMAL = ("exact", "dynamic")
BY_GAIN = ("greedy", "stochastic", "threshold", "agglomerative")  # which tell what each cut is worth
BY_SCORE = ("frequency", "selection")
BY_VALUE = (*BY_SCORE, "hashing")  # which do not fold neighbouring rates
METHODS = (*OPTIMAL, *BY_GAIN, "divisive", "bucketing", *BY_VALUE)
NOT_JOINT = ("divisive", "bucketing", "hashing")
ALLOCATIONS = ("joint", "uniform", "information")
_LEAST_EPSILON = 1e-9  # smaller ones would not lower a threshold


def check_method(method: str, allocation: str) -> None:
    """Refuse an unknown method or allocation, or an allocation that the method does not have."""
    checks.choice("method", method, METHODS)
    checks.choice("allocation", allocation, ALLOCATIONS)
    if allocation == "joint" and method in NOT_JOINT:
        raise InputError(
            f"method {method!r} has no joint allocation, because it does not rank cuts or values by gain. Give "
            f"{argument('allocation', 'uniform')} or {argument('allocation', 'information')}."
        )


def check_epsilon(name: str, given: Any) -> float:
    """Return the factor by which thresholds fall."""
    if not isinstance(given, Real) or isinstance(given, bool) or not _LEAST_EPSILON <= float(given) < 1:
        raise InputError(
            f"must be a number, at least {_LEAST_EPSILON} and below 1, got {given!r}.", argument=name
        )
    return float(given)
