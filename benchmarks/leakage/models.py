"""Encoded rows -> log-losses, of three models with the same settings for every recipe.

What is left to choose (the L2 strength, the weight decay, when to stop, whether LightGBM takes ids as
categories) is chosen on the validation rows. Numbers that are no ids, such as encoded rates, are standardised.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.leakage.data import Array, Rows
from benchmarks.leakage.recipes import Encoded

LOGISTIC, NETWORK, LIGHTGBM = "logistic regression", "network", "LightGBM"
_STRENGTHS = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # C of scikit-learn: the inverse of the L2 penalty
_DECAYS = (1e-5, 1e-3, 1e-2)  # the weight decay of the network: chosen with the first seed
_SEEDS = (0, 1)
_BATCH, _DIMENSION, _HIDDEN = 512, 8, 64
_ROUND, _ROUNDS, _PATIENCE = 75_000, 30, 3  # rows between two looks at the validation rows, and when to stop
_TREES = {
    "objective": "binary",
    "learning_rate": 0.05,
    "num_leaves": 31,
    "min_data_in_leaf": 50,
    "feature_fraction": 0.7,
    "num_threads": 1,  # two threads wait for each other where cores are shared: many times slower
    "seed": 0,
    "deterministic": True,
    "force_col_wise": True,
    "verbosity": -1,
}


@dataclass(frozen=True, eq=False)
class Scores:
    """The mean log-loss of training and validation rows, and that of every test row."""

    train: float
    valid: float
    test: Array
    setting: str
    seconds: float = 0.0


def losses(labels: Array, scores: Array) -> Array:
    """Return the log-loss of every row, from log-odds."""
    return np.logaddexp(0, scores) - labels * scores


def _scores(rows: Rows, odds: list[Array], setting: str) -> Scores:
    train, valid, test = (losses(labels, part) for labels, part in zip(rows.labels, odds, strict=True))
    return Scores(float(train.mean()), float(valid.mean()), test, setting)


def _numbers(rows: Rows, encoded: Encoded) -> list[Array]:
    """Return what is no id, encoded rates included, standardised by the training rows."""
    parts = [part[rows.numbers].to_numpy(np.float64) for part in rows.parts]
    if not encoded.sizes:
        parts = [np.hstack(both) for both in zip(encoded.parts, parts, strict=True)]
    mean, spread = parts[0].mean(axis=0), np.maximum(parts[0].std(axis=0), 1e-9)
    return [(part - mean) / spread for part in parts]


def _offset(encoded: Encoded) -> list[NDArray[np.int64]]:
    """Return the ids of all columns as ids of one table; no columns where there are no ids."""
    if not encoded.sizes:
        return [np.empty((len(part), 0), np.int64) for part in encoded.parts]
    return [part + np.cumsum([0, *encoded.sizes[:-1]]) for part in encoded.parts]


def logistic(rows: Rows, encoded: Encoded) -> Scores:
    """Fit a logistic regression on one column per id."""
    from sklearn.linear_model import LogisticRegression

    def one_hot(ids: NDArray[np.int64], numbers: Array) -> Any:
        starts = np.arange(len(ids) + 1) * ids.shape[1]
        shape = (len(ids), sum(encoded.sizes))
        ones = sparse.csr_array((np.ones(ids.size), ids.ravel(), starts), shape=shape)
        return sparse.hstack([ones, sparse.csr_array(numbers)], format="csr") if encoded.sizes else numbers

    designs = [one_hot(*part) for part in zip(_offset(encoded), _numbers(rows, encoded), strict=True)]
    estimator = LogisticRegression(max_iter=500, tol=1e-4, warm_start=True)

    def tries() -> Iterator[Scores]:
        for strength in _STRENGTHS:
            estimator.set_params(C=strength).fit(designs[0], rows.labels[0])
            yield _scores(rows, [estimator.decision_function(design) for design in designs], f"C={strength}")

    return min(tries(), key=lambda scores: scores.valid)


def network(rows: Rows, encoded: Encoded) -> Scores:
    """Train a small network on embedded ids; the mean over the seeds."""
    inputs = _offset(encoded), _numbers(rows, encoded)
    tries = {decay: _train(rows, sum(encoded.sizes), *inputs, decay, _SEEDS[0]) for decay in _DECAYS}
    decay = min(tries, key=lambda decay: tries[decay].valid)
    found = [tries[decay], *(_train(rows, sum(encoded.sizes), *inputs, decay, seed) for seed in _SEEDS[1:])]
    return Scores(
        train=float(np.mean([scores.train for scores in found])),
        valid=float(np.mean([scores.valid for scores in found])),
        test=np.mean([scores.test for scores in found], axis=0),
        setting=f"decay {decay:g}, rounds " + "+".join(scores.setting for scores in found),
    )


def _train(
    rows: Rows, n_ids: int, ids: list[NDArray[np.int64]], numbers: list[Array], decay: float, seed: int
) -> Scores:
    """Train with one decay and seed, and keep the round that is best on the validation rows."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    embedding = nn.Embedding(max(n_ids, 1), _DIMENSION)
    nn.init.normal_(embedding.weight, std=0.05)
    n_inputs = ids[0].shape[1] * _DIMENSION + numbers[0].shape[1]
    layers = nn.Sequential(
        *(nn.Linear(n_inputs, _HIDDEN), nn.ReLU(), nn.Dropout(0.1)),
        *(nn.Linear(_HIDDEN, _HIDDEN), nn.ReLU(), nn.Dropout(0.1), nn.Linear(_HIDDEN, 1)),
    )
    optimizer = torch.optim.Adam([*embedding.parameters(), *layers.parameters()], lr=1e-3, weight_decay=decay)
    inputs = [
        (torch.from_numpy(part), torch.from_numpy(n.astype(np.float32)))
        for part, n in zip(ids, numbers, strict=True)
    ]
    labels = torch.from_numpy(rows.labels[0].astype(np.float32))

    def odds(part: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        return layers(torch.hstack([embedding(part).flatten(1), others])).squeeze(1)

    best, turn, best_turn = None, 0, 0
    while turn < _ROUNDS and turn - best_turn < _PATIENCE:
        turn += 1
        layers.train()
        for batch in torch.randperm(len(labels))[:_ROUND].split(_BATCH):
            optimizer.zero_grad()
            predicted = odds(*(tensor[batch] for tensor in inputs[0]))
            nn.functional.binary_cross_entropy_with_logits(predicted, labels[batch]).backward()
            optimizer.step()
        layers.eval()
        with torch.no_grad():
            valid = losses(rows.labels[1], odds(*inputs[1]).numpy().astype(np.float64)).mean()
            if best is None or valid < best.valid:
                parts = [odds(*part).numpy().astype(np.float64) for part in inputs]
                best, best_turn = _scores(rows, parts, str(turn)), turn
    assert best is not None
    return best


def lightgbm(rows: Rows, encoded: Encoded) -> Scores:
    """Boost trees on ids as numbers; where their order means nothing, also as categories: the better one."""
    import lightgbm as lgb

    beside = [part[rows.numbers].to_numpy(np.float64) for part in rows.parts]
    designs = [np.hstack(both) for both in zip(encoded.parts, beside, strict=True)]
    ways: dict[str, list[int]] = {"numbers": []}
    if encoded.sizes and not encoded.is_ordered:
        ways["categories"] = list(range(len(encoded.sizes)))

    def tries() -> Iterator[Scores]:
        for way, columns in ways.items():
            options: dict[str, Any] = {"params": {"verbosity": -1}, "categorical_feature": columns or "auto"}
            train = lgb.Dataset(designs[0], rows.labels[0], free_raw_data=False, **options)
            valid = lgb.Dataset(designs[1], rows.labels[1], reference=train, **options)
            stop = lgb.early_stopping(50, verbose=False)
            booster = lgb.train(_TREES, train, 1000, valid_sets=[valid], callbacks=[stop])
            odds = [booster.predict(design, raw_score=True) for design in designs]
            yield _scores(rows, odds, f"{way}, {booster.best_iteration} trees")

    return min(tries(), key=lambda scores: scores.valid)


_ALL: Mapping[str, tuple[str, Callable[[Rows, Encoded], Scores]]] = {
    LOGISTIC: ("sklearn", logistic),
    NETWORK: ("torch", network),
    LIGHTGBM: ("lightgbm", lightgbm),
}
MODELS = {name: fit for name, (package, fit) in _ALL.items() if find_spec(package)}


def score(model: str, rows: Rows, encoded: Encoded) -> Scores:
    """Fit a model and score it, and note the time."""
    start = time.perf_counter()
    scores = MODELS[model](rows, encoded)
    return Scores(scores.train, scores.valid, scores.test, scores.setting, time.perf_counter() - start)
