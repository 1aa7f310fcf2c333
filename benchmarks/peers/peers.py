"""Training rows -> groups: ours, and what people use today, each with the settings that serve it best here.

A peer takes a workload, looks at its training rows only, and returns what encodes rows: for each column an
array of anything that can be told apart, of which equal ones are a group. `budget` is for all columns together;
a peer that sees columns only one at a time gets `size` groups for each, a uniform split, or `size_of_rates`.
"""

import os
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import vocabfold as vf
from benchmarks.peers.data import LABEL, Array, Rows

EXACT, MODEL = "vocabfold, information", "vocabfold, model"
UNIFORM = f"{EXACT}, uniform split"

Groups = list[Array]  # one array per column
Grouping = Callable[[Array, Array], Array]  # (neg, pos) of the values -> their groups


@dataclass(frozen=True, eq=False)
class Fitted:
    """What encodes any rows, and the groups of the training rows if the fit gives them as well."""

    encode: Callable[[pd.DataFrame], Groups]
    train: Groups | None = None


@dataclass(frozen=True)
class Peer:
    """How to fit, in code and in words; the module it needs; the text it takes best, "str" or "object"."""

    fit: Callable[[Rows], Fitted]
    how: str
    needs: str
    kind: str = "object"
    is_limited: bool = True  # it keeps to the number of groups
    has_programs: bool = False  # it starts other processes, whose memory counts as well


def _of_frame(frame: Any) -> Groups:
    return [frame[name].to_numpy() for name in frame.columns]


def _of_book(book: Any, features: list[str], train: pd.DataFrame | None = None) -> Fitted:
    def encode(frame: pd.DataFrame) -> Groups:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # these are the rows of the fit: that is the measure
            return _of_frame(book.transform(frame[features]))

    return Fitted(encode, None if train is None else _of_frame(train[features]))


def folded(**options: Any) -> Callable[[Rows], Fitted]:
    """Fold for information."""

    def fit(rows: Rows) -> Fitted:
        counts = vf.count(rows.train, LABEL, rows.features)
        return _of_book(vf.fit(counts, rows.about.budget, aim="information", **options), rows.features)

    return fit


def folded_for_model(rows: Rows) -> Fitted:
    """Fold for a model; training rows are encoded out of fold."""
    book, train = vf.fit_transform(rows.train, LABEL, rows.about.budget, features=rows.features)
    return _of_book(book, rows.features, train)


def of_rates(group: Callable[[int], Grouping], is_merged: bool = True) -> Callable[[Rows], Fitted]:
    """Count the values of each column with pandas, group them by their counts; unseen values are a group.

    Not merged: values of equal rate may come into several groups.
    """

    def fit(rows: Rows) -> Fitted:
        known, size = {}, rows.about.size_of_rates if is_merged else rows.about.size
        for name in rows.features:
            codes, values = pd.factorize(rows.train[name])
            count, pos = np.bincount(codes), np.bincount(codes, rows.labels).astype(np.int64)
            known[name] = pd.Index(values), np.append(group(size)(count - pos, pos), -1)

        def encode(frame: pd.DataFrame) -> Groups:
            return [groups[values.get_indexer(frame[name])] for name, (values, groups) in known.items()]

        return Fitted(encode)

    return fit


def _tree(rank: Array, neg: Array, pos: Array, size: int) -> Array:
    """Return the leaf of each rank, of a tree that is given two weighted rows for each."""
    from sklearn.tree import DecisionTreeClassifier

    if rank.size == 1 or size == 1:
        return np.zeros(rank.size, np.int64)  # it refuses one leaf
    in_order = np.argsort(rank, kind="stable")  # the tree sorts rows in order faster
    tree = DecisionTreeClassifier(criterion="entropy", max_leaf_nodes=size, random_state=0)
    cells = rank.astype(np.float32)[:, None]
    weight = np.stack([neg[in_order], pos[in_order]], axis=1).ravel()
    tree.fit(np.repeat(cells[in_order], 2, axis=0), np.tile([0, 1], rank.size), weight)
    return tree.apply(cells)


def tree(size: int) -> Grouping:
    """Rank the values by their rate, and cut the ranks with a tree."""

    def group(neg: Array, pos: Array) -> Array:
        rank = np.empty(neg.size)
        rank[np.argsort(pos / (neg + pos), kind="stable")] = np.arange(neg.size)
        return _tree(rank, neg, pos, size)

    return group


def tree_of_rates(size: int) -> Grouping:
    """Do the same with equal rates merged before."""

    def group(neg: Array, pos: Array) -> Array:
        rates, place = np.unique(pos / (neg + pos), return_inverse=True)
        return _tree(np.arange(rates.size), np.bincount(place, neg), np.bincount(place, pos), size)[place]

    return group


def kmeans(size: int) -> Grouping:
    """Cluster the rates of the values with kmeans1d, which takes no weights."""
    import kmeans1d

    def group(neg: Array, pos: Array) -> Array:
        return np.asarray(kmeans1d.cluster(pos / (neg + pos), size).clusters)

    return group


def weighted_kmeans(size: int) -> Grouping:
    """Cluster the distinct rates with ckwrap, each with its rows as weight."""
    import ckwrap

    def group(neg: Array, pos: Array) -> Array:
        rates, place = np.unique(pos / (neg + pos), return_inverse=True)
        weights = np.bincount(place, neg + pos)
        return np.asarray(ckwrap.ckmeans(rates, min(size, rates.size), weights, method="loglinear").labels)[
            place
        ]

    return group


def ordinal(rows: Rows) -> Fitted:
    """Keep the most frequent values, all others in one group."""
    from sklearn.preprocessing import OrdinalEncoder

    unknown = {"handle_unknown": "use_encoded_value", "unknown_value": -1, "dtype": np.int64}
    encoder = OrdinalEncoder(max_categories=rows.about.size, **unknown).fit(rows.train[rows.features])
    return Fitted(lambda frame: list(encoder.transform(frame[rows.features]).T))


def _target(rows: Rows) -> Any:
    from sklearn.preprocessing import TargetEncoder

    return TargetEncoder(target_type="binary", random_state=0)


def target(rows: Rows) -> Fitted:
    """Replace values by shrunk rates; each number is a group."""
    encoder = _target(rows).fit(rows.train[rows.features], rows.labels)
    return Fitted(lambda frame: list(encoder.transform(frame[rows.features]).T))


def _quantiles(numbers: Groups, rows: Rows) -> list[Array]:
    """Return where to cut the numbers of the training rows into groups of about equal numbers of rows."""
    sizes = [min(rows.about.size, rows.train[name].nunique()) for name in rows.features]
    return [
        np.unique(np.quantile(column, np.arange(1, size) / size, method="lower"))
        for size, column in zip(sizes, numbers, strict=True)
    ]


def _clusters(numbers: Groups, rows: Rows) -> list[Array]:
    """Return where to cut the numbers of the training rows into groups that are close together."""
    import ckwrap

    cuts = []
    for name, column in zip(rows.features, numbers, strict=True):
        distinct, n_rows = np.unique(column, return_counts=True)
        size = min(rows.about.size, rows.train[name].nunique(), distinct.size)
        label = np.asarray(ckwrap.ckmeans(distinct, size, n_rows, method="loglinear").labels)
        last = np.flatnonzero(np.diff(label))
        cuts.append((distinct[last] + distinct[last + 1]) / 2)
    return cuts


def _cut(numbers: Groups, cuts: list[Array]) -> Groups:
    return [np.searchsorted(c, column, side="right") for c, column in zip(cuts, numbers, strict=True)]


def target_in_quantiles(rows: Rows) -> Fitted:
    """Cut the numbers of TargetEncoder at the quantiles of the training rows."""
    numbers = target(rows).encode
    cuts = _quantiles(numbers(rows.train), rows)
    return Fitted(lambda frame: _cut(numbers(frame), cuts))


def crossfitted_target(find_cuts: Callable[[Groups, Rows], list[Array]]) -> Callable[[Rows], Fitted]:
    """Encode the training rows out of fold, as TargetEncoder is meant to be used, and cut its numbers."""

    def fit(rows: Rows) -> Fitted:
        encoder = _target(rows)
        train = list(encoder.fit_transform(rows.train[rows.features], rows.labels).T)
        cuts = find_cuts(train, rows)
        return Fitted(
            lambda frame: _cut(list(encoder.transform(frame[rows.features]).T), cuts), _cut(train, cuts)
        )

    return fit


def binning(**options: Any) -> Callable[[Rows], Fitted]:
    """Bin with optbinning, with the number of groups allowed, or by its defaults."""

    def fit(rows: Rows) -> Fitted:
        from optbinning import OptimalBinning

        size = rows.about.size
        limits = {"max_n_prebins": max(2, size), "max_n_bins": size} if options else {}
        binners = {}
        for name in rows.features:
            binner = OptimalBinning(name=name, dtype="categorical", **limits, **options)
            binners[name] = binner.fit(rows.train[name].to_numpy(), rows.labels)
        return Fitted(
            lambda f: [b.transform(f[name].to_numpy(), metric="indices") for name, b in binners.items()]
        )

    return fit


def khiops(rows: Rows) -> Fitted:
    """Group with Khiops, which takes fewer groups than allowed if the rows do not support more."""
    from khiops.sklearn import KhiopsEncoder

    # its programs lie beside Python, and it looks for them on the path only
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    settings = {"n_features": 0, "n_trees": 0, "n_pairs": 0, "n_text_features": 0, "n_cores": 1}
    encoder = KhiopsEncoder(
        **settings,
        transform_type_categorical="part_id",
        n_feature_parts=rows.about.size,
        informative_features_only=False,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that its samples are not installed
        encoder.fit(rows.train[rows.features], rows.labels)
    return Fitted(lambda frame: _of_frame(pd.DataFrame(encoder.transform(frame[rows.features]))))


def tree_encoder(rows: Rows) -> Fitted:
    """Rank by rate and cut with feature-engine's tree; with one setting to try, its search is a formality."""
    from feature_engine.encoding import DecisionTreeEncoder
    from sklearn.model_selection import ShuffleSplit

    encoder = DecisionTreeEncoder(
        encoding_method="ordered",
        regression=False,
        scoring="neg_log_loss",
        cv=ShuffleSplit(1, train_size=0.05, test_size=0.05, random_state=0),
        param_grid={"max_leaf_nodes": [max(2, rows.about.size_of_rates)], "criterion": ["entropy"]},
        random_state=0,
        unseen="encode",
        fill_value=-1.0,
    )
    encoder.fit(rows.train[rows.features], rows.train[LABEL])
    return Fitted(lambda frame: _of_frame(encoder.transform(frame[rows.features])))


def other_target(rows: Rows) -> Fitted:
    """Cut the numbers of category_encoders' TargetEncoder at the quantiles of the training rows."""
    from category_encoders import TargetEncoder

    encoder = TargetEncoder(cols=rows.features).fit(rows.train[rows.features], rows.train[LABEL])

    def numbers(frame: pd.DataFrame) -> Groups:
        return _of_frame(encoder.transform(frame[rows.features]))

    cuts = _quantiles(numbers(rows.train), rows)
    return Fitted(lambda frame: _cut(numbers(frame), cuts))


def count_encoder(rows: Rows) -> Fitted:
    """Replace values by their counts with category_encoders, those too rare for a group of their own by one."""
    from category_encoders import CountEncoder

    least = {}
    for name in rows.features:
        counts = rows.train[name].value_counts()
        if len(counts) > rows.about.size:
            least[name] = int(counts.iloc[rows.about.size - 1]) + 1
    name = dict.fromkeys(least, "rare values")
    encoder = CountEncoder(cols=rows.features, min_group_size=least, min_group_name=name)
    encoder.fit(rows.train[rows.features])
    return Fitted(lambda frame: _of_frame(encoder.transform(frame[rows.features])))


def hashing(rows: Rows) -> Fitted:
    """Hash with pandas."""

    def encode(frame: pd.DataFrame) -> Groups:
        size = np.uint64(rows.about.size)
        return [pd.util.hash_array(frame[name].to_numpy()) % size for name in rows.features]

    return Fitted(encode)


_QUANTILES = "cut at the quantiles of the training rows into m groups"

PEERS: Mapping[str, Peer] = {
    EXACT: Peer(
        folded(),
        '`vf.fit(vf.count(...), budget, aim="information")`; one budget for all columns',
        "vocabfold",
        kind="str",
    ),
    UNIFORM: Peer(
        folded(allocation="uniform"),
        'the same with `allocation="uniform"`, the split that the others get',
        "vocabfold",
        kind="str",
    ),
    MODEL: Peer(
        folded_for_model,
        "`vf.fit_transform(..., budget)`; training rows out of fold, so that little chance is kept",
        "vocabfold",
        kind="str",
    ),
    "scikit-learn entropy tree": Peer(
        of_rates(tree, is_merged=False),
        "values counted with pandas and ranked by rate, two weighted rows each, sorted, "
        'for `DecisionTreeClassifier(criterion="entropy", max_leaf_nodes=m)`',
        "sklearn",
    ),
    "scikit-learn entropy tree, equal rates merged": Peer(
        of_rates(tree_of_rates), "the same, two rows for each distinct rate", "sklearn"
    ),
    "scikit-learn OrdinalEncoder": Peer(
        ordinal, "`OrdinalEncoder(max_categories=m)`: frequent values, all others in one group", "sklearn"
    ),
    "scikit-learn TargetEncoder, quantiles": Peer(
        target_in_quantiles, f"`TargetEncoder().fit`, its numbers {_QUANTILES}", "sklearn"
    ),
    "scikit-learn TargetEncoder, out of fold, quantiles": Peer(
        crossfitted_target(_quantiles),
        f"`TargetEncoder().fit_transform`, training rows out of fold as intended, {_QUANTILES}",
        "sklearn",
    ),
    "scikit-learn TargetEncoder, out of fold, k-means": Peer(
        crossfitted_target(_clusters),
        "the same, its numbers cut by `ckwrap.ckmeans(numbers, m, weights=rows)`",
        "ckwrap",
    ),
    "scikit-learn TargetEncoder, every number": Peer(
        target, "every distinct number is a group; has no m", "sklearn", is_limited=False
    ),
    "optbinning": Peer(
        binning(divergence="js", min_prebin_size=1e-6, monotonic_trend=None),
        '`OptimalBinning(dtype="categorical", divergence="js", max_n_prebins=m, max_n_bins=m, '
        "min_prebin_size=1e-6, monotonic_trend=None)`; it merges bins of one class before it optimises",
        "optbinning",
    ),
    "optbinning, defaults": Peer(
        binning(), '`OptimalBinning(dtype="categorical")`; has no m', "optbinning", is_limited=False
    ),
    "Khiops": Peer(
        khiops,
        '`KhiopsEncoder(n_features=0, n_trees=0, n_text_features=0, transform_type_categorical="part_id", '
        "n_feature_parts=m)`; it makes no more groups than the rows support",
        "khiops",
        has_programs=True,
    ),
    "kmeans1d": Peer(
        of_rates(kmeans),
        "`kmeans1d.cluster(rates, m)`, a rate per value; it takes no weights, and may split equal rates",
        "kmeans1d",
    ),
    "ckwrap, weighted": Peer(
        of_rates(weighted_kmeans),
        '`ckwrap.ckmeans(rates, m, weights=rows, method="loglinear")` on the distinct rates',
        "ckwrap",
    ),
    "feature-engine DecisionTreeEncoder": Peer(
        tree_encoder,
        '`DecisionTreeEncoder(encoding_method="ordered", regression=False, param_grid={"max_leaf_nodes": [m], '
        '"criterion": ["entropy"]})`, with the smallest search: one setting, one split of 5 % of the rows',
        "feature_engine",
    ),
    "selection as in TensorFlow Transform, re-implemented": Peer(
        folded(method="selection"),
        'its formula in `vf.fit(..., method="selection")`: values by their information, the rest in one group',
        "vocabfold",
        kind="str",
    ),
    "category_encoders TargetEncoder, quantiles": Peer(
        other_target,
        f"the package's most popular encoder; its numbers {_QUANTILES}",
        "category_encoders",
        kind="str",
    ),
    "category_encoders CountEncoder": Peer(
        count_encoder,
        "the package's encoder that groups: values by their count, all but the most frequent together",
        "category_encoders",
    ),
    "hashing with pandas": Peer(hashing, "`pandas.util.hash_array(values) % m`", "pandas"),
}
SEVERAL_COLUMNS = (UNIFORM,)  # peers that differ from others on more than one column only
