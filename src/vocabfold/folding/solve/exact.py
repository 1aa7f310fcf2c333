"""Curves + budget -> the cuts of least loss, with a proof: one price per id for all columns.

The least loss of a column is convex in the number of its ids (quadrangle inequality), so the partition that
minimises loss + price * ids is the best of its own size, and one pass over the curve finds it. A search over
the price reaches the budget (aggarwal1994). Where the budget lies inside an edge of the convex hull, both
ends of the edge are optimal at one price, and are spliced into a partition of exactly the budget. Any price
also proves a lower bound: no fold of at most `budget` ids loses less than min(loss + price * ids) -
price * budget. One column is the same problem with a list of one.

Most of the time goes into passes, so the search saves them: the first price comes from a thinned copy of the
curves, and once two passes bracket the budget, the next ones look only between their cuts.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from vocabfold.folding.curve import Curve
from vocabfold.folding.solve._kernels import (
    HIGH,
    LOW,
    Scale,
    narrow_pass,
    price_pass,
    scale_of,
    tabulate,
    trace,
)

# Measured: a full pass evaluates about 8 starts per position; a narrow pass with at most as many is cheaper.
_FEW = 8
_SHORT = 64  # rates, up to which a full pass costs nothing
_THIN = 1000  # rates, below which a pass is cheaper than a good guess at the first price


@dataclass(frozen=True, eq=False)
class Optimum:
    """The optimal cuts of each column, and a lower bound on the loss of any fold of that size, in nats."""

    cuts: list[NDArray[np.int64]]
    floors: list[float]

    @property
    def sizes(self) -> list[int]:
        """Number of ids of each column."""
        return [cuts.size + 1 for cuts in self.cuts]


def solve(curves: Sequence[Curve], budget: int, rows: int | None = None) -> Optimum:
    """Split `budget` ids over the curves so that the sum of their losses is minimal.

    Losses are per row of each curve, or per `rows` for all curves. Every curve gets at least one id and at most
    one per rate; the budget is spent exactly, or every rate has its own id. O(K log K) per pass for K rates in
    total; usually one to ten passes, a few dozen at worst in our trials.
    """
    spare = budget - len(curves)
    if spare >= sum(curve.n_rates - 1 for curve in curves):
        return Optimum([np.arange(1, curve.n_rates) for curve in curves], [0.0] * len(curves))
    # Columns with one rate, which may lack a class, have nothing to cut.
    columns = [_Column.of(curve, rows) for curve in curves if curve.n_rates > 1]
    return _optimum(curves, _best(columns, spare + len(columns)))


def at_price(curves: Sequence[Curve], price: float, rows: int) -> Optimum:
    """Give every curve as many ids as each save at least `price` nats per `rows`."""
    found = _pass([_Column.of(curve, rows) for curve in curves if curve.n_rates > 1], price)
    return _optimum(curves, zip(found.cuts, found.losses, strict=True))


def _optimum(curves: Sequence[Curve], best: Iterable[tuple[NDArray[np.int64], float]]) -> Optimum:
    """Put the cuts of the curves with several rates in their places among all curves."""
    found, nothing = iter(best), (np.empty(0, np.int64), 0.0)
    of_all = [next(found) if curve.n_rates > 1 else nothing for curve in curves]
    return Optimum([cuts for cuts, _ in of_all], [floor for _, floor in of_all])


def least_losses(curve: Curve, max_size: int) -> NDArray[np.float64]:
    """Return the minimal loss of the curve for each size from 1 to `max_size`, in nats.

    Bisection finds the vertices of the convex hull: the price of a chord either finds a vertex below the chord
    or proves that the chord is an edge, and then all sizes between its ends lie on it.
    """
    losses = np.zeros(max_size)
    if curve.n_rates == 1:
        return losses
    columns = [_Column.of(curve)]
    few, many = _coarsest(columns), _finest(columns)
    noise = _noise(few.cost(0.0), 1)
    if max_size < curve.n_rates:
        _, many, _ = _search(columns, max_size)
    chords = [(few, many)]
    while chords:
        few, many = chords.pop()
        if many.size - few.size > 1:
            price = _chord(few, many)
            middle = _pass(columns, price, (few, many))
            below = few.cost(price) - middle.cost(price)
            if few.size < middle.size < many.size and below > noise:
                chords += [(few, middle), (middle, many)]
                continue
        sizes = np.arange(few.size, min(many.size, max_size) + 1)
        ends = [few.size, many.size], [few.cost(0.0), many.cost(0.0)]
        losses[sizes - 1] = np.interp(sizes, *ends)
    return losses


@dataclass(frozen=True, eq=False)
class _Column:
    """A curve with both classes, prepared for passes."""

    table: NDArray[np.float64]
    scale: Scale
    rows: int

    @classmethod
    def of(cls, curve: Curve, rows: int | None = None) -> Self:
        scale = scale_of(curve.cum_neg, curve.cum_pos)
        return cls(tabulate(curve.cum_neg, curve.cum_pos, scale), scale, rows or curve.rows)

    @property
    def n_rates(self) -> int:
        return len(self.table) - 1

    @property
    def total(self) -> float:
        return float(self.table[-1, HIGH] + self.table[-1, LOW]) / self.rows

    def thinned(self, stride: int) -> Self:
        """Keep only every stride-th position for cuts; the losses stay those of the whole curve."""
        kept = np.append(np.arange(0, self.n_rates, stride), self.n_rates)
        return type(self)(self.table[kept], self.scale, self.rows)


@dataclass(frozen=True, eq=False)
class _Point:
    """A partition of every column that is optimal at its price: a vertex of the convex hull."""

    price: float
    losses: list[float]
    cuts: list[NDArray[np.int64]]
    previous: list[NDArray[np.int32]]
    is_full: bool = False

    @property
    def size(self) -> int:
        return sum(cuts.size + 1 for cuts in self.cuts)

    def cost(self, price: float) -> float:
        """Return loss + price * ids of this partition: the minimum, at its own price."""
        return math.fsum(self.losses) + price * self.size

    def floors(self, sizes: list[int]) -> list[float]:
        """Return the lower bound that this price proves for each column at another size."""
        return [
            max(0.0, loss + self.price * (cuts.size + 1 - size))
            for loss, cuts, size in zip(self.losses, self.cuts, sizes, strict=True)
        ]


def _coarsest(columns: list[_Column]) -> _Point:
    """Return the point of an infinite price: one segment per column."""
    losses = [column.total for column in columns]
    cuts = [np.empty(0, np.int64) for _ in columns]
    return _Point(math.inf, losses, cuts, [np.zeros(column.n_rates + 1, np.int32) for column in columns])


def _finest(columns: list[_Column]) -> _Point:
    """Return the point of price zero: every rate is a segment."""
    cuts = [np.arange(1, column.n_rates) for column in columns]
    previous = [np.arange(-1, column.n_rates, dtype=np.int32) for column in columns]
    return _Point(0.0, [0.0] * len(columns), cuts, previous)


def _best(columns: list[_Column], budget: int) -> list[tuple[NDArray[np.int64], float]]:
    """Return the optimal cuts of each column, exactly the budget in total, and their lower bounds."""
    if budget == len(columns):
        alone = _coarsest(columns)
        return list(zip(alone.cuts, alone.losses, strict=True))
    few, many, proof = _search(columns, budget)
    cuts = _splice_columns(few, many, budget)
    if not proof.is_full:  # a narrow pass proves a bound only if its windows were right
        proof = _pass(columns, proof.price)
    return list(zip(cuts, proof.floors([part.size + 1 for part in cuts]), strict=True))


def _search(columns: list[_Column], budget: int) -> tuple[_Point, _Point, _Point]:
    """Return two points around the budget that are both optimal at the price of the third, up to rounding.

    All three are the same if a point has exactly the budget.
    """
    few, many = _coarsest(columns), _finest(columns)
    n_rates, total = many.size, few.cost(0.0)
    price = _first_price(columns, budget, n_rates)
    width, slow, on_chord = n_rates, 0, False
    while True:
        trial = _pass(columns, price, (few, many))
        if trial.size == budget:
            return trial, trial, trial
        is_inside = few.size < trial.size < many.size
        if trial.size < budget:
            few = trial if trial.size >= few.size else few
        else:
            many = trial if trial.size <= many.size else many
        below = _mix(few, many, budget, price) - trial.cost(price)
        if below <= _noise(total, budget) or (on_chord and not is_inside):
            return few, many, trial
        slow = 0 if 2 * (many.size - few.size) <= width else slow + 1
        width = many.size - few.size
        on_chord = slow > 1 or not is_inside
        price = _chord(few, many) if on_chord else _aim(few, many, budget, n_rates)


def _noise(total: float, size: int) -> float:
    """Return the rounding error of the loss of so many segments, in nats."""
    return 2.0**-51 * total / math.sqrt(size)


def _chord(few: _Point, many: _Point) -> float:
    """Return the price at which both points cost the same; points between them cost no more."""
    return max(0.0, few.cost(0.0) - many.cost(0.0)) / (many.size - few.size)


def _mix(few: _Point, many: _Point, budget: int, price: float) -> float:
    """Return the cost at the budget on the chord between two points."""
    share = (budget - few.size) / (many.size - few.size)
    return (1 - share) * few.cost(price) + share * many.cost(price)


def _aim(few: _Point, many: _Point, budget: int, n_rates: int) -> float:
    """Guess the price of the budget from the points around it.

    On a dense curve the loss falls with the square of the size and the price with its cube; near the number
    of rates it falls faster. With a price on both sides, interpolate their logarithms; with one side only,
    aim a little past the budget, to get the other.
    """

    def depth(size: int) -> float:
        return math.log(size) - math.log1p(-size / n_rates)

    if few.price <= many.price:  # rounding: the points cost the same
        return _chord(few, many)
    if few.price < math.inf and many.size < n_rates:
        share = (depth(budget) - depth(few.size)) / (depth(many.size) - depth(few.size))
        return few.price * math.pow(many.price / few.price, share)
    if few.price < math.inf:
        return few.price * math.exp(4 * (depth(few.size) - depth(budget)))
    if many.size < n_rates:
        return many.price * math.exp(4 * (depth(many.size) - depth(budget)))
    return _chord(few, many)


def _first_price(columns: list[_Column], budget: int, n_rates: int) -> float:
    """Guess a price from thinned curves, at the same budget if they have enough rates, else at a lower one."""
    if n_rates >= 16 * budget and n_rates > _THIN:
        stride, part = min(16, n_rates // (8 * budget)), budget
    else:
        stride, part = 4, budget // 4
    if n_rates <= _THIN or part <= len(columns):
        return sum(column.total for column in columns) / (2 * budget * budget)
    _, _, proof = _search([column.thinned(stride) for column in columns], part)
    return proof.price * (part / budget) ** 3


def _pass(columns: list[_Column], price: float, between: tuple[_Point, _Point] | None = None) -> _Point:
    """Find the optimal partition of every column at a price; search only `between` two points, if given."""
    losses, cuts, previous, is_full = [], [], [], True
    for i, column in enumerate(columns):
        cost_of_id = price * column.rows
        windows = [point.previous[i] for point in between] if between else []
        if windows and column.n_rates > _SHORT and _width(*windows) <= _FEW * column.n_rates:
            cost, begin = narrow_pass(column.table, column.scale, cost_of_id, *windows)
            is_full = False
        else:
            cost, begin = price_pass(column.table, column.scale, cost_of_id)
        previous.append(begin)
        cuts.append(trace(begin))
        losses.append(cost / column.rows - price * (cuts[-1].size + 1))
    return _Point(price, losses, cuts, previous, is_full)


def _width(earlier: NDArray[np.int32], later: NDArray[np.int32]) -> int:
    return int(later.sum(dtype=np.int64) - earlier.sum(dtype=np.int64))


def _splice_columns(few: _Point, many: _Point, budget: int) -> list[NDArray[np.int64]]:
    """Go from the cuts of `few` to those of `many`, column by column, until the budget is spent."""
    left = budget - few.size
    result = []
    for fewer, more in zip(few.cuts, many.cuts, strict=True):
        taken = max(0, min(left, more.size - fewer.size))
        left -= taken
        result.append(_splice(fewer, more, fewer.size + taken) if taken else fewer)
    return result


def _splice(fewer: NDArray[np.int64], more: NDArray[np.int64], n_cuts: int) -> NDArray[np.int64]:
    """Join the first cuts of one partition to the last cuts of another, `n_cuts` in all.

    They are joined inside a segment of `fewer` that contains one of `more`: by the quadrangle inequality, the
    two partitions that result from crossing there cost no more than the two given.
    """
    ahead = more.size - n_cuts
    inside = np.flatnonzero(more[ahead : ahead + fewer.size] <= fewer)
    joint = int(inside[0]) if inside.size else fewer.size
    return np.concatenate([fewer[:joint], more[ahead + joint :]])
