"""The options of `fit`, each described in one place.

The steps, the command line, the stages of Spark, the saved codebook and the documents take from here the
default of an option, what is allowed, and its help. Public signatures repeat names and defaults, as people
and scikit-learn read them there; a test compares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import InitVar, asdict, dataclass, field, fields
from functools import partial
from numbers import Real
from types import NoneType
from typing import Any, Self

from vocabfold.errors import InputError, argument
from vocabfold.folding.methods import ALLOCATIONS, BY_VALUE, METHODS, OPTIMAL, check_epsilon, check_method
from vocabfold.support import checks, notes

AUTO = "auto"
AIMS = ("model", "information")
UNSEEN = ("other", "own", "error")
LEAST_IDS = {"own": 2}  # per column; one for all other settings of `unseen`
BLIND = ("frequency", "hashing")  # methods by which no label decides who shares an id
_SAFE_COUNT = 20  # rows, below which the id of a value would leak the labels of these rows
_SMOOTHING: Mapping[str, float | str] = {"model": AUTO, "information": 0}


@dataclass(frozen=True)
class Option:
    """What an option may be, and how it is shown."""

    check: Callable[[str, Any], Any]  # from its name and what was given to what the steps take
    json: tuple[type, ...]  # what it is in the header of a codebook
    metavar: str  # on the command line
    help: str
    default: Any
    read: type = str  # what the command line takes it for
    short: tuple[str, ...] = ()  # the flag in one letter
    methods: tuple[str, ...] = METHODS  # that look at it


def _option(
    default: Any,
    check: Callable[[str, Any], Any],
    json: type | tuple[type, ...],
    metavar: str,
    help: str,
    **more: Any,
) -> Any:
    kinds = json if isinstance(json, tuple) else (json,)
    return field(default=default, metadata={"option": Option(check, kinds, metavar, help, default, **more)})


def _one_of(words: tuple[str, ...]) -> Callable[[str, Any], Any]:
    return partial(checks.choice, allowed=words)


def _at_least(least: int) -> Callable[[str, Any], Any]:
    return partial(checks.at_least, least=least)


def _budget(name: str, given: Any) -> Any:
    if given is None:
        raise InputError("is missing: give a number of ids, or 'auto'.", argument=name)
    if isinstance(given, str):
        if given == AUTO:
            return given
        raise InputError(f"must be a number of ids, or 'auto', got {given!r}.", argument=name)
    return checks.at_least(name, given, 1)


def _strength(name: str, given: Any) -> Any:
    """Return "auto", or a number of rows, and none that is too large for a double."""
    if isinstance(given, str) and given == AUTO:
        return given
    try:
        if isinstance(given, Real) and not isinstance(given, bool) and 0 <= float(given) < math.inf:
            return float(given) or 0
    except OverflowError:
        pass
    raise InputError(f"must be 'auto' or a number of rows, 0 or more, got {given!r}.", argument=name)


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """The options of `fit`, checked each on its own and together."""

    aim: str = _option(
        "model",
        _one_of(AIMS),
        str,
        "model|information",
        "What the ids are for: to train a model on, or to keep as much information about these rows as "
        "possible.",
    )
    method: str = _option(
        "exact",
        _one_of(METHODS),
        str,
        "NAME",
        "How to fold: exact, dynamic (the optimum); greedy, stochastic, threshold (the paper's); "
        "agglomerative, divisive, bucketing, frequency, selection, hashing (for comparison; the last three "
        "only to keep information).",
    )
    allocation: str = _option(
        "joint",
        _one_of(ALLOCATIONS),
        str,
        "joint|uniform|information",
        "How to split the budget between columns; divisive, bucketing and hashing have no joint split.",
    )
    budget: int | str = _option(
        None,
        _budget,
        (int, str),
        "IDS",
        "Number of ids over all columns, or auto.",
        short=("-b",),
    )
    smoothing: float | str = _option(
        None,
        _strength,
        (int, float, str),
        "ROWS",
        "Add so many rows at the rate of the column to each value, or auto; the default depends on the aim.",
    )
    min_count: int = _option(
        None,
        _at_least(1),
        int,
        "N",
        "Values with fewer rows are rare, and grouped as `other`; by default 1 (none), but 20 for a model if "
        "the counts have no folds.",
        read=int,
    )
    dedicated_min: int = _option(
        30, _at_least(1), int, "N", "For a model: rows needed for a dedicated id.", read=int
    )
    shared_ids: int = _option(
        8,
        _at_least(1),
        int,
        "N",
        "For a model: target number of shared ids per column, for infrequent values; together at most half the "
        "budget.",
        read=int,
    )
    unseen: str = _option(
        "other",
        _one_of(UNSEEN),
        str,
        "other|own|error",
        "What to do with values that are not in the codebook: give them the id `other`, or one of their own "
        "in each column, which training rows have, too, or fail.",
    )
    epsilon: float = _option(
        0.1,
        check_epsilon,
        float,
        "X",
        "For stochastic and threshold: a number below 1; smaller is better and slower.",
        read=float,
        methods=("stochastic", "threshold"),
    )
    shards: int = _option(
        1,
        _at_least(1),
        int,
        "N",
        "For threshold: number of shards of each column, which are folded separately.",
        read=int,
        methods=("threshold",),
    )
    seed: int = _option(
        0,
        _at_least(0),
        int,
        "N",
        "For stochastic: seed of the samples.",
        read=int,
        methods=("stochastic",),
    )
    with_folds: InitVar[bool] = False  # of the counts: can rows be encoded out of fold?

    @classmethod
    def of(cls, given: Mapping[str, Any], *, with_folds: bool = False) -> Self:
        """Return the settings among arguments, or among what a codebook says of itself."""
        return cls(**{name: given[name] for name in OPTIONS}, with_folds=with_folds)

    def __post_init__(self, with_folds: bool) -> None:
        for name, option in OPTIONS.items():
            given = getattr(self, name)
            if given is None and option.default is None:
                given = default_of(name, self.aim, with_folds=with_folds)
            object.__setattr__(self, name, option.check(name, given))
        self._check_together()

    def _check_together(self) -> None:
        """Refuse options that do not go together."""
        information, model = argument("aim", "information"), argument("aim", "model")
        auto = argument("budget", AUTO)
        if self.method in BY_VALUE and self.aim == "model":
            is_joint = self.method == "hashing" and self.allocation == "joint"
            also = f" and {argument('allocation', 'uniform')}" if is_joint else ""
            raise InputError(
                f"method {self.method!r} does not fold by rate, as {model} does with infrequent values; give "
                f"{information}{also}."
            )
        if self.budget == AUTO and self.aim != "model":
            raise InputError(f"{auto} is for {model}; give a number of ids.")
        if self.budget == AUTO and self.method not in OPTIMAL:
            raise InputError(
                f"{auto} is for {argument('method', 'exact')}; give that method, or a number of ids."
            )
        check_method(self.method, self.allocation)
        if self.method in BY_VALUE and self.smoothing != 0:
            raise InputError(
                f"method {self.method!r} takes counts as they are; leave {argument('smoothing')} out."
            )

    def check_training(self) -> None:
        """Refuse settings with which training rows cannot be encoded; warn of ids that leak their labels."""
        if self.method == "selection":
            notes.warn(
                "method 'selection' chooses values by the labels of these rows, so that the id of a rare "
                "one leaks them even out of fold; use another method, or fit on older rows."
            )
        if self.unseen == "error" and self.min_count > 1:
            raise InputError(
                f"{argument('unseen', 'error')} refuses rare values, which these rows would have; give "
                f"{argument('min_count', 1)}."
            )

    def noted(self, dedicated_from: float | None) -> dict[str, Any]:
        """Return what a codebook says of how it was fitted; the last fact follows from the counts."""
        noted: dict[str, Any] = {}
        for name, value in asdict(self).items():
            noted[name] = value
            if name == "dedicated_min":
                noted[DEDICATED_FROM] = dedicated_from
        return noted


OPTIONS: Mapping[str, Option] = {one.name: one.metadata["option"] for one in fields(FitSettings)}


def default_of(name: str, aim: str, *, with_folds: bool) -> Any:
    """Return the default of an option, which may depend on the aim and on whether the counts have folds."""
    if name == "min_count":
        return 1 if with_folds or aim == "information" else _SAFE_COUNT
    return _SMOOTHING[aim] if name == "smoothing" else OPTIONS[name].default


DEDICATED_FROM = "dedicated_from"  # the fewest rows of a value with a dedicated id, as the budget allows
NOTED: Mapping[str, tuple[type, ...]] = {
    name: (int, float, NoneType) if name == DEDICATED_FROM else OPTIONS[name].json
    for name in FitSettings(budget=1).noted(None)
}
