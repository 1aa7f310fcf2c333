"""The query structure of alg:query: the cuts made so far, and the gain of one more.

The paper keeps the cuts in a red-black tree. Positions are known beforehand, so a complete binary tree over
them in one array suffices: a node is set if a cut lies below it. The neighbours of a cut are found in
logarithmic time, by climbing until a sibling on that side has one. Where alg:query cumulates probabilities,
this tree uses integer counts, whose differences are exact.

`best` is the same tree over numbers: each node has the larger of the two below it, so that the largest number,
the first of equal ones, is found from the top.
"""

import numpy as np
from numpy.typing import NDArray

from vocabfold.folding.information import gain
from vocabfold.support.kernels import kernel

Tree = NDArray[np.bool_]
Gains = tuple[NDArray[np.int64], NDArray[np.float64]]
"""Cuts in the order in which they were made, and the gain of each at that time, in nats times rows."""


@kernel
def width_of(n_rates: int) -> int:
    """Return the smallest power of two above n_rates: a leaf for each position from 0 to n_rates."""
    width = 1
    while width <= n_rates:
        width *= 2
    return width


@kernel
def initialise(n_rates: int) -> Tree:
    """Return the tree in which only the two ends are cut (alg:query, Initialization)."""
    tree = np.zeros(2 * width_of(n_rates), np.bool_)
    insert(tree, 0)
    insert(tree, n_rates)
    return tree


@kernel
def insert(tree: Tree, cut: int) -> None:
    """Make a cut (alg:query, Insert)."""
    node = tree.size // 2 + cut
    while node > 0 and not tree[node]:
        tree[node] = True
        node //= 2


@kernel
def before(tree: Tree, cut: int) -> int:
    """Return the last cut before a position after the first."""
    node = tree.size // 2 + cut
    while node % 2 == 0 or not tree[node - 1]:
        node //= 2
    node -= 1
    while node < tree.size // 2:
        node = 2 * node + 1 if tree[2 * node + 1] else 2 * node
    return node - tree.size // 2


@kernel
def after(tree: Tree, cut: int) -> int:
    """Return the first cut after a position before the last."""
    node = tree.size // 2 + cut
    while node % 2 == 1 or not tree[node + 1]:
        node //= 2
    node += 1
    while node < tree.size // 2:
        node = 2 * node if tree[2 * node] else 2 * node + 1
    return node - tree.size // 2


@kernel
def query(cum_neg: NDArray[np.int64], cum_pos: NDArray[np.int64], tree: Tree, cut: int) -> float:
    """Return the gain of a cut that is not made yet (alg:query, Query), in nats times rows."""
    return gain_between(cum_neg, cum_pos, before(tree, cut), cut, after(tree, cut))


@kernel
def gain_between(
    cum_neg: NDArray[np.int64], cum_pos: NDArray[np.int64], left: int, cut: int, right: int
) -> float:
    """Return the gain of a cut between two neighbouring cuts."""
    return gain(
        float(cum_neg[cut] - cum_neg[left]),
        float(cum_pos[cut] - cum_pos[left]),
        float(cum_neg[right] - cum_neg[cut]),
        float(cum_pos[right] - cum_pos[cut]),
    )


@kernel
def tournament(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the tree whose leaves are the numbers, and whose nodes are the larger of the two below."""
    width = width_of(numbers.size - 1)
    best = np.full(2 * width, -np.inf)
    best[width : width + numbers.size] = numbers
    for node in range(width - 1, 0, -1):
        best[node] = max(best[2 * node], best[2 * node + 1])
    return best


@kernel
def replace(best: NDArray[np.float64], place: int, number: float) -> None:
    """Change one of the numbers."""
    node = best.size // 2 + place
    best[node] = number
    while node > 1:
        node //= 2
        larger = max(best[2 * node], best[2 * node + 1])
        if best[node] == larger:
            break
        best[node] = larger


@kernel
def leader(best: NDArray[np.float64]) -> int:
    """Return the place of the largest number, the first of equal ones."""
    node = 1
    while node < best.size // 2:
        node = 2 * node if best[2 * node] >= best[2 * node + 1] else 2 * node + 1
    return node - best.size // 2
