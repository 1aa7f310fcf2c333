"""Loops over the segments of one curve, compiled.

The loss of a segment is the sum of its values' divergences from the column's rate minus the segment's own
divergence (eq:FS and eq:IXC). Both are of the size of the information, not of the entropy, so columns with
little information stay accurate. Row i of a `table` holds what that difference needs:

    ROWS       rows before position i
    CROSS      cross product of the counts before i with the column's
    HIGH, LOW  divergences of the values before i, cumulated in two floats

The cross product needs no second float: rounding that adds a little to a segment takes as much from its
neighbour, and as their rates are close, the losses change to second order only.

The loss obeys the quadrangle inequality: for a <= b <= c <= d, crossing segments lose no more than nested
ones, loss(a,c) + loss(b,d) <= loss(a,d) + loss(b,c). All loops below rest on it.
"""

import numpy as np
from numpy.typing import NDArray

from vocabfold.folding.information import cross_product, excess
from vocabfold.support.kernels import inlined, kernel

ROWS, CROSS, HIGH, LOW = range(4)

Scale = tuple[float, float, float, float]
"""A column's constants: the shares of its two classes, and one over their counts."""


def scale_of(cum_neg: NDArray[np.int64], cum_pos: NDArray[np.int64]) -> Scale:
    """Return the constants of a curve with both classes."""
    neg, pos = float(cum_neg[-1]), float(cum_pos[-1])
    return neg / (neg + pos), pos / (neg + pos), 1 / neg, 1 / pos


@kernel
def tabulate(cum_neg: NDArray[np.int64], cum_pos: NDArray[np.int64], scale: Scale) -> NDArray[np.float64]:
    """Return the table of a curve with both classes."""
    n_rates = cum_neg.size - 1
    base_neg = float(cum_neg[n_rates])
    base_pos = float(cum_pos[n_rates])
    table = np.zeros((n_rates + 1, 4))
    high = 0.0
    low = 0.0
    for i in range(1, n_rates + 1):
        table[i, ROWS] = cum_neg[i] + cum_pos[i]
        table[i, CROSS] = cross_product(float(cum_neg[i]), float(cum_pos[i]), base_neg, base_pos)
        term = _divergence(table, scale, i - 1, i)
        total = high + term
        carry = total - high
        low += (high - (total - carry)) + (term - carry)
        high = total
        table[i, HIGH] = high
        table[i, LOW] = low
    return table


@inlined
def _divergence(table: NDArray[np.float64], scale: Scale, a: int, b: int) -> float:
    """Return the divergence of the segment [a, b) from the column's rate, in nats times rows."""
    rows = table[b, ROWS] - table[a, ROWS]
    shift = (table[b, CROSS] - table[a, CROSS]) / rows
    result: float = rows * (scale[0] * excess(shift * scale[2]) + scale[1] * excess(-shift * scale[3]))
    return result


@inlined
def segment_loss(table: NDArray[np.float64], scale: Scale, a: int, b: int) -> float:
    """Return the loss of the segment [a, b), in nats times rows."""
    of_values: float = (table[b, HIGH] - table[a, HIGH]) + (table[b, LOW] - table[a, LOW])
    return max(0.0, of_values - _divergence(table, scale, a, b))


@inlined
def _cost(table: NDArray[np.float64], scale: Scale, best: NDArray[np.float64], start: int, end: int) -> float:
    """Return the cost of the best partition up to `start` plus the loss of a last segment [start, end)."""
    cost: float = best[start] + segment_loss(table, scale, start, end)
    return cost


@kernel
def price_pass(table: NDArray[np.float64], scale: Scale, price: float) -> tuple[float, NDArray[np.int32]]:
    """Find the partition that minimises the loss plus a price for every segment.

    Return that minimum and, for each position, the start of the last segment of the best partition up to it.
    Candidate starts stand in a queue, each with the position from which it is the best, and its cost there: by
    the quadrangle inequality a later candidate that has overtaken an earlier one stays ahead, so galloping and
    bisection find that position (galil1992). About 8 evaluations of the cost per position.
    """
    last = table.shape[0] - 1
    best = np.zeros(last + 1)
    previous = np.zeros(last + 1, np.int32)
    queue = np.zeros(last + 1, np.int32)
    since = np.zeros(last + 1, np.int32)
    entry = np.zeros(last + 1)
    head = 0
    tail = 0
    since[0] = 1
    entry[0] = _cost(table, scale, best, 0, 1)
    for here in range(1, last + 1):
        # The head is the best start at `here`, and its cost is known. Then prepare the head for here + 1.
        best[here] = entry[head] + price
        previous[here] = queue[head]
        if here == last:
            break
        if head < tail and since[head + 1] == here + 1:
            head += 1
        else:
            since[head] = here + 1
            entry[head] = _cost(table, scale, best, queue[head], here + 1)
        # Remove candidates that `here` beats from their first position on: they are never the best.
        ahead = last + 1
        behind = ahead
        cost_ahead = np.inf
        while tail >= head:
            behind = since[tail]
            cost = _cost(table, scale, best, here, behind)
            if cost >= entry[tail]:
                break
            ahead = behind
            cost_ahead = cost
            tail -= 1
        if tail >= head:  # else it wins from here + 1 on, which is `ahead`
            rival = queue[tail]
            step = 1
            while ahead - behind > 1:
                if ahead > last:
                    probe = min(behind + step, last)
                    step *= 2
                else:
                    probe = (ahead + behind) // 2
                cost = _cost(table, scale, best, here, probe)
                if cost < _cost(table, scale, best, rival, probe):
                    ahead = probe
                    cost_ahead = cost
                else:
                    behind = probe
            if ahead > last:  # the rival wins up to the end
                continue
        tail += 1
        queue[tail] = here
        since[tail] = ahead
        entry[tail] = cost_ahead
    return best[last], previous


@kernel
def narrow_pass(
    table: NDArray[np.float64],
    scale: Scale,
    price: float,
    earlier: NDArray[np.int32],
    later: NDArray[np.int32],
) -> tuple[float, NDArray[np.int32]]:
    """Do as `price_pass`, but try only the starts between those at a higher and at a lower price.

    The best start moves right as the price falls. Rounding can swap two starts that are equally good, hence the
    minimum and maximum.
    """
    last = table.shape[0] - 1
    best = np.zeros(last + 1)
    previous = np.zeros(last + 1, np.int32)
    for here in range(1, last + 1):
        least = np.inf
        for start in range(min(earlier[here], later[here]), max(earlier[here], later[here]) + 1):
            cost = _cost(table, scale, best, start, here)
            if cost < least:
                least = cost
                previous[here] = start
        best[here] = least + price
    return best[last], previous


@kernel
def trace(previous: NDArray[np.int32]) -> NDArray[np.int64]:
    """Follow the starts back from the end; return the cuts, rising."""
    size = 0
    here = previous.size - 1
    while here > 0:
        here = previous[here]
        size += 1
    cuts = np.empty(size - 1, np.int64)
    here = previous.size - 1
    for i in range(size - 2, -1, -1):
        here = previous[here]
        cuts[i] = here
    return cuts


@kernel
def layer_pass(
    table: NDArray[np.float64], scale: Scale, before: NDArray[np.float64], size: int
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Add one segment to the best partitions into size - 1; return the least loss up to each position.

    Also return where the last segment starts. Starts rise with the position, so each is searched between those
    of its neighbours in a coarser grid; all positions of one grid come before those of the next finer one.
    """
    last = table.shape[0] - 1
    best = np.full(last + 1, np.inf)
    previous = np.full(last + 1, size - 1, np.int32)
    stride = 1
    while stride <= last:
        stride *= 2
    while stride > 1:
        stride //= 2
        for here in range(size - 1 + stride, last + 1, 2 * stride):
            first = previous[here - stride]
            final = here - 1
            if here + stride <= last:
                final = min(final, previous[here + stride])
            for start in range(first, final + 1):
                loss = _cost(table, scale, before, start, here)
                if loss < best[here]:
                    best[here] = loss
                    previous[here] = start
    return best, previous
