"""Folded, dedicated and rare values -> one column of a codebook: its ids, numbered, and what they keep."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vocabfold.codebook.column import BookColumn
from vocabfold.codebook.stores import Built
from vocabfold.counts.units import rows_of
from vocabfold.fitting.pairs import Mask, Pairs, Units
from vocabfold.folding.curve import order
from vocabfold.folding.information import loss_of_groups
from vocabfold.folding.results import Fold

Ids = NDArray[np.int32]
Floats = NDArray[np.float64]


def build(
    kind: str,
    pairs: Pairs,
    shared: Mask,
    fold: Fold | None,
    dedicated: pa.Table,
    *,
    is_apart: bool,
    is_last: bool,
    is_trained: bool = False,
    rows_to_order: float = 0,
) -> Built:
    """Return a column with its ids, numbered by rate, and what they keep.

    The fold is that of the pairs in `shared`, and of the rare values as one entry after them, unless these are
    kept apart; `dedicated` has the values with dedicated ids, in order. Those with fewer rows than
    `rows_to_order`, and such rare values, are numbered as if all had the rate of the prior. With `is_last`,
    rare values that are kept apart have the last id, even if there are none; with `is_trained`, training rows
    have it, too. Without a fold, the pairs in `shared` join a dedicated id.
    """
    n_shared = fold.size if fold else 0
    has_rare = bool(pairs.is_rare.any())
    has_own = is_apart and (is_last or has_rare)
    of_values = {name: dedicated[name].to_numpy() for name in pairs.sums}
    dedicated_rates = pairs.rates_of(of_values)
    takes_rare = np.zeros(dedicated.num_rows, np.bool_)
    rows = rows_of(of_values, pairs.units_per_row)
    if not (n_shared or has_own):  # then all values without an id join one that is dedicated, or a bucket
        distance = -rows if is_last else np.abs(dedicated_rates - pairs.prior.mean)
        takes_rare[np.argmin(distance)] = True
        without = pairs.is_rare | shared
        more = {name: int(pairs.sums[name][without] @ pairs.n_values[without]) for name in of_values}
        joined = {name: side + more[name] * takes_rare for name, side in of_values.items()}
        dedicated_rates = pairs.rates_of(joined)
    rates = np.concatenate([_shared_rates(pairs, shared, fold), [pairs.rare_rate] * has_own, dedicated_rates])
    # A dedicated id is the same in all folds: the order of few rows would tell each of them its own label.
    has_few_rows = np.zeros(rates.size, np.bool_)
    has_few_rows[n_shared:] = np.append([pairs.rare_rows] * has_own, rows) < rows_to_order
    # Of equal rates, shared ids come first, then `other`, then values in their order, those with few rows last.
    in_order = np.lexsort((has_few_rows, np.where(has_few_rows, pairs.prior.mean, rates)))
    if not n_shared and kind != "text":
        in_order = np.roll(np.arange(rates.size), -int(has_own))  # by value, and `other` last
    elif has_own and is_last:
        in_order = np.append(in_order[in_order != n_shared], n_shared)
    ids = np.empty(rates.size, np.int32)
    ids[in_order] = np.arange(rates.size)
    of_shared, of_dedicated = ids[:n_shared], ids[n_shared + has_own :]
    borders = borders_of(pairs, shared, fold)
    if has_own:
        other = int(ids[n_shared])
    elif has_rare and fold:
        other = int(of_shared[fold.ids[-1]])
    elif fold:
        other = int(of_shared[np.searchsorted(borders, pairs.prior.mean, side="right")])
    else:
        other = int(of_dedicated[takes_rare][0])
    n_pairs = int(shared.sum())
    of_pairs = of_shared[fold.ids[:n_pairs]] if fold else np.full(n_pairs, other, np.int32)
    information, total, loss = _figures(pairs, shared, of_pairs, of_values, of_dedicated, other, rates.size)
    kept = ~pairs.is_rare
    with_rare = has_rare and not is_apart
    column = BookColumn(
        kind="text" if kind == "missing" else kind,
        size=rates.size,
        n_values=int(pairs.n_values[kept].sum()),
        n_rare=int(pairs.n_values[pairs.is_rare].sum()),
        n_dedicated=dedicated.num_rows,
        n_rates=_n_rates(pairs, kept, with_rare),
        other=other,
        shared=tuple(of_shared.tolist()),
        borders=tuple(borders.tolist()),
        rates=tuple(pairs.evidence.rates(rates[in_order]).tolist()),
        mean=pairs.prior.mean,
        strength=pairs.prior.strength,
        information=information,
        total=total,
        loss=loss,
        gap=fold.gap if fold else 0.0,
        is_other_trained=has_own and is_trained,
    )
    return Built(
        column,
        pa.table({**{name: side[shared] for name, side in pairs.sums.items()}, "id": of_pairs}),
        pa.table({"value": dedicated["value"], "id": of_dedicated, **of_values}),
    )


def _entries(pairs: Pairs, shared: Mask, fold: Fold) -> tuple[Floats, Floats]:
    """Return the rates that were folded, and their masses."""
    neg, pos = pairs.evidence.sums
    rates = pairs.rates[shared]
    masses = ((pairs.sums[neg] + pairs.sums[pos]) * pairs.n_values)[shared].astype(np.float64)
    if fold.ids.size > rates.size:
        of_rare = float(pairs.rare(neg) + pairs.rare(pos))
        rates, masses = np.append(rates, pairs.rare_rate), np.append(masses, of_rare)
    return rates, masses


def _shared_rates(pairs: Pairs, shared: Mask, fold: Fold | None) -> Floats:
    """Return the rate of each shared id."""
    if fold is None:
        return np.empty(0)
    rates, masses = _entries(pairs, shared, fold)
    means = np.bincount(fold.ids, masses * rates, fold.size) / np.bincount(fold.ids, masses, fold.size)
    return np.clip(means, *_ranges(rates, fold))  # where all rates of an id are one, rounding must not show


def borders_of(pairs: Pairs, shared: Mask, fold: Fold | None) -> Floats:
    """Return the rates midway between neighbouring shared ids."""
    if fold is None:
        return np.empty(0)
    lowest, highest = _ranges(_entries(pairs, shared, fold)[0], fold)
    middle = (highest[:-1] + lowest[1:]) / 2
    return np.where(middle > highest[:-1], middle, lowest[1:])  # of two doubles without one between, the higher


def _ranges(rates: Floats, fold: Fold) -> tuple[Floats, Floats]:
    """Return the lowest and the highest rate of each id."""
    lowest, highest = np.ones(fold.size), np.zeros(fold.size)
    np.minimum.at(lowest, fold.ids, rates)
    np.maximum.at(highest, fold.ids, rates)
    return lowest, highest


def _n_rates(pairs: Pairs, kept: Mask, with_rare: bool) -> int:
    neg, pos = pairs.neg[kept], pairs.pos[kept]
    if with_rare:
        neg, pos = np.append(neg, pairs.rare("neg")), np.append(pos, pairs.rare("pos"))
    if pairs.is_rounded:
        return np.unique(pos / (neg + pos)).size
    return order(neg, pos).n_rates if neg.size else 0


def _figures(
    pairs: Pairs,
    shared: Mask,
    of_pairs: Ids,
    dedicated: Mapping[str, Units],
    of_dedicated: Ids,
    other: int,
    size: int,
) -> tuple[float, float, float]:
    """Return what the ids keep of the counts, what the values tell, and what is lost, in nats per row."""
    rare = pairs.is_rare
    neg = np.concatenate([pairs.neg[shared], pairs.neg[rare], dedicated["neg"]])
    pos = np.concatenate([pairs.pos[shared], pairs.pos[rare], dedicated["pos"]])
    n_values = np.concatenate(
        [pairs.n_values[shared], pairs.n_values[rare], np.ones(of_dedicated.size, np.int64)]
    )
    ids = np.concatenate([of_pairs, np.full(int(rare.sum()), other, np.int32), of_dedicated])
    groups = np.zeros((2, size), np.int64)
    np.add.at(groups[0], ids, neg * n_values)
    np.add.at(groups[1], ids, pos * n_values)
    of_all = (pairs.rounded(side * pairs.n_values) for side in (pairs.neg, pairs.pos))
    return (
        order(*pairs.rounded(groups)).total,
        order(*of_all).total,
        loss_of_groups(neg, pos, n_values, ids, size) / pairs.n_units,
    )
