"""Plain, slow, obviously right: what vocabfold computes, from the definitions; no numba, no vocabfold."""

from collections.abc import Hashable, Iterator, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from math import fsum, inf, isinf, lgamma, log

Counts = Sequence[int]


def grouped(neg: Counts, pos: Counts, ids: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """The counts of each group, as plain integers."""
    groups: dict[int, tuple[int, int]] = {}
    for n, p, i in zip(neg, pos, ids, strict=True):
        old = groups.get(i, (0, 0))
        groups[i] = (old[0] + int(n), old[1] + int(p))
    return tuple(groups[i] for i in sorted(groups))


def information(neg: Counts, pos: Counts, ids: Sequence[int]) -> float:
    """I(Z;C) from its definition, with 60 digits before the last rounding, in nats."""
    return float(_information(grouped(neg, pos, ids)))


@cache
def _information(table: tuple[tuple[int, int], ...]) -> Decimal:
    with localcontext() as context:
        context.prec = 60
        rows = Decimal(sum(neg + pos for neg, pos in table))
        labels = [Decimal(sum(pair[c] for pair in table)) for c in (0, 1)]
        result = Decimal(0)
        for pair in table:
            for c in (0, 1):
                if pair[c]:
                    joint = Decimal(pair[c]) / rows
                    result += joint * (Decimal(pair[c]) * rows / (labels[c] * sum(pair))).ln()
        return result


def total(neg: Counts, pos: Counts) -> float:
    """I(X;C)."""
    return information(neg, pos, range(len(neg)))


def loss(neg: Counts, pos: Counts, ids: Sequence[int]) -> float:
    """I(X;C) - I(Z;C), likewise."""
    with localcontext() as context:
        context.prec = 60
        return float(_information(grouped(neg, pos, range(len(neg)))) - _information(grouped(neg, pos, ids)))


def partitions(n_values: int, size: int) -> Iterator[list[int]]:
    """Every way to give n_values values at most `size` ids, consecutive or not, up to renaming."""

    def extend(ids: list[int], used: int) -> Iterator[list[int]]:
        if len(ids) == n_values:
            yield ids
            return
        for new in range(min(used + 1, size)):
            yield from extend([*ids, new], max(used, new + 1))

    return extend([], 0)


def best_of_all(neg: Counts, pos: Counts, size: int) -> float:
    """The most information that any function of the value with `size` results keeps."""
    return max(information(neg, pos, ids) for ids in partitions(len(neg), size))


def merged(neg: Counts, pos: Counts) -> list[tuple[int, int]]:
    """The distinct rates, rising, with their counts summed; rates compared as fractions."""
    rates: dict[Fraction, tuple[int, int]] = {}
    for n, p in zip(neg, pos, strict=True):
        n, p = int(n), int(p)
        if n + p:
            old = rates.get(Fraction(p, n + p), (0, 0))
            rates[Fraction(p, n + p)] = (old[0] + n, old[1] + p)
    return [rates[rate] for rate in sorted(rates)]


def segments(table: Sequence[tuple[int, int]], cuts: Sequence[int]) -> list[tuple[int, int]]:
    """The counts of the segments between the cuts."""
    ends = [0, *cuts, len(table)]
    return [
        (sum(n for n, _ in table[a:b]), sum(p for _, p in table[a:b]))
        for a, b in zip(ends, ends[1:], strict=False)
    ]


def best_consecutive(neg: Counts, pos: Counts, size: int) -> float:
    """The same over the consecutive partitions of the distinct rates, by trying all."""
    table = merged(neg, pos)
    size = min(size, len(table))
    return max(
        float(_information(tuple(segments(table, cuts))))
        for cuts in combinations(range(1, len(table)), size - 1)
    )


def best_by_programme(neg: Counts, pos: Counts, max_size: int) -> list[float]:
    """The best information for each size from 1 on, by the programme as defined, O(size * K**2)."""
    table = merged(neg, pos)
    whole = tuple(segments(table, ()))[0]

    @cache
    def term(a: int, b: int) -> Decimal:
        n, p = segments(table[a:b], ())[0]
        with localcontext() as context:
            context.prec = 60
            rows = Decimal(sum(whole))
            return sum(
                (
                    Decimal(x) / rows * (Decimal(x) * rows / (Decimal(n + p) * Decimal(y))).ln()
                    for x, y in zip((n, p), whole, strict=True)
                    if x
                ),
                Decimal(0),
            )

    last = len(table)
    best: list[Decimal | None] = [None] * (last + 1)
    best[0] = Decimal(0)
    result: list[float] = []
    for _ in range(max_size):
        best = [
            max((best[a] + term(a, b) for a in range(b) if best[a] is not None), default=None)
            for b in range(last + 1)
        ]
        result.append(result[-1] if best[last] is None else float(best[last]))
    return result


def best_split(columns: Sequence[tuple[Counts, Counts]], budget: int) -> float:
    """The most that the columns can keep together with `budget` ids, by trying all splits."""
    curves = [best_by_programme(neg, pos, min(budget, len(merged(neg, pos)))) for neg, pos in columns]
    splits = product(*(range(1, len(curve) + 1) for curve in curves))
    return max(
        sum(curve[size - 1] for curve, size in zip(curves, sizes, strict=True))
        for sizes in splits
        if sum(sizes) <= budget
    )


def gain(table: Sequence[tuple[int, int]], cuts: Sequence[int], cut: int) -> Decimal:
    """What one more cut adds to the information, from the definition."""
    return _information(tuple(segments(table, sorted([*cuts, cut])))) - _information(
        tuple(segments(table, sorted(cuts)))
    )


def sweeps(table: Sequence[tuple[int, int]], epsilon: float, n_cuts: int) -> list[int]:
    """Cuts by falling thresholds, each a sweep over all that are left, as sec:Alg says; rounds do not end."""
    cuts: list[int] = []
    threshold = max((gain(table, [], cut) for cut in range(1, len(table))), default=Decimal(0))
    while len(cuts) < min(n_cuts, len(table) - 1):
        for cut in range(1, len(table)):
            if cut not in cuts and len(cuts) < n_cuts and gain(table, cuts, cut) >= threshold:
                cuts.append(cut)
        threshold *= 1 - Decimal(epsilon)
    return cuts


def divergence(rate: Fraction, centre: Fraction) -> float:
    """The Kullback-Leibler divergence of a rate from a centre."""
    terms = [(rate, centre), (1 - rate, 1 - centre)]
    if any(p and not q for p, q in terms):
        return inf
    return fsum(float(p) * (log(p / q) if p else 0.0) for p, q in terms)


def count_rows(rows, feature, label, *, positive=1, weight=None):
    """Count {value: [neg, pos]} of rows given as dicts, one after another; NaN is missing."""
    counts = {}
    for row in rows:
        value = row[feature]
        if isinstance(value, float):
            value = None if value != value else value + 0.0
        sides = counts.setdefault((type(value).__name__, value), [0, 0])
        sides[row[label] == positive] += 1 if weight is None else row[weight]
    return {value: sides for value, sides in counts.items() if any(sides)}


def beta_binomial(pairs: dict[tuple[int, int], int], mean: float, strength: float) -> float:
    """The logarithm of how likely labels are if each value's rate is drawn from a beta distribution."""

    def beta(a: float, b: float) -> float:
        return lgamma(a) + lgamma(b) - lgamma(a + b)

    a, b = mean * strength, (1 - mean) * strength
    return fsum(n * (beta(b + neg, a + pos) - beta(b, a)) for (neg, pos), n in pairs.items())


def shrunk(neg: float, pos: float, mean: float, strength: float) -> float:
    """The rate of a value, with `strength` rows of the mean added."""
    return (
        mean
        if isinf(strength) or neg + pos + strength == 0
        else (pos + mean * strength) / (neg + pos + strength)
    )


def dedicated_from(
    columns: Sequence[Sequence[int]], n_of_rare: int, budget: int, least: int, shared_ids: int
) -> float:
    """The fewest rows that give values dedicated ids, such that they fit: by trying all numbers."""
    for rows in [least, *sorted({n for column in columns for n in column if n > least}), inf]:
        n_dedicated = sum(n >= rows for column in columns for n in column)
        n_sharing = sum(any(n < rows for n in column) for column in columns)
        n_shared = max(n_sharing, min(shared_ids * n_sharing, budget // 2, budget - n_of_rare))
        if n_dedicated + n_shared + n_of_rare <= budget:
            return rows
    raise ValueError("the budget is too small")


def out_of_fold(
    rows: Sequence[tuple[Hashable, int, int]],
    ids: dict[Hashable, int],
    shared: Sequence[int],
    borders: Sequence[float],
    prior: tuple[float, float],
    other: int,
    is_other_trained: bool = False,
) -> list[int]:
    """The id of each row (value, label, fold) of a column, by the labels in other folds only."""
    encoded = []
    alike: dict[Hashable, list[tuple[int, int]]] = {}
    for value, label, fold in rows:
        alike.setdefault((value,) if value in ids else other, []).append((label, fold))  # rare values are one
    for value, _, fold in rows:
        if ids.get(value, other) in shared:
            labels = [label for label, f in alike[(value,) if value in ids else other] if f != fold]
            rate = shrunk(labels.count(0), labels.count(1), *prior)
            is_unseen = is_other_trained and not labels
            encoded.append(other if is_unseen else shared[sum(border <= rate for border in borders)])
        else:
            encoded.append(ids.get(value, other))
    return encoded
