"""Compile all kernels into the cache, before several processes of tests compile the same at the same time.

`python tests/support/compiling.py` takes a quarter of a minute, and two seconds if all is there.
"""

import sys
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from numba.core.registry import CPUDispatcher

import vocabfold as vf
from vocabfold.codebook import _index_kernels
from vocabfold.folding import information
from vocabfold.folding.methods import METHODS
from vocabfold.folding.solve import baselines


def compile_all():
    """Do small tasks that call every kernel, with all types of arguments that tests call it with."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of methods that do badly on so little, and ids that leak labels
        _fold()
        _encode()
        _call()
    left = _not_compiled()
    assert not left, f"no small task calls {', '.join(left)}: add one here"


def _fold():
    neg, pos = np.random.default_rng(0).integers(1, 50, (2, 100))
    neg[0], pos[0] = 10**6, 10**6
    for method in METHODS:
        vf.fold(neg, pos, 3, method=method)
        vf.fold(pa.array(neg), pa.array(pos), 3, method=method)  # which cannot be written
    vf.curve(neg, pos)


def _encode():
    numbers = np.random.default_rng(0).integers(0, 40, 400)
    columns = {"text": [f"v{number}" for number in numbers], "number": numbers, "click": numbers % 2}
    rows, features = pa.table(columns), ["text", "number"]
    counts = vf.count(rows, "click", features, folds=3)
    for method in ("exact", "hashing"):
        vf.fit(counts, 10, aim="information", method=method, allocation="uniform")
    vf.fit_transform(rows, "click", 10, features=features)
    vf.fit(counts, 10, smoothing=1).transform(rows, counts=counts)
    book = vf.fit(vf.count(rows, "click", features), 10, min_count=1)
    with TemporaryDirectory() as folder:
        book.save(Path(folder, "book"))
        for found in (book, vf.load(Path(folder, "book"))):
            found.row({"text": "v1", "number": 1})  # by search
            found.ids("text", ["v1"])
            found.transform(rows.select(features))  # by a table


def _call():
    """Call what no small task reaches, or tests call directly with other types."""
    units = np.arange(3)
    _index_kernels.tabulate_numbers(units.astype(np.uint64))
    baselines._splits(units, units, units[1:2])
    information.phi(1, 2)
    for number in (int, float):
        information.divergence(number(1), number(2), number(3), number(4))


def _not_compiled():
    """Return the names of kernels that nobody has called, nor another kernel calls."""
    found = [
        value
        for name, module in list(sys.modules.items())
        if name.startswith("vocabfold.")
        for value in vars(module).values()
        if isinstance(value, CPUDispatcher) and value.__module__ == name
    ]
    inside = {name for kernel in found for name in kernel.py_func.__code__.co_names}
    return [kernel.__name__ for kernel in found if not kernel.signatures and kernel.__name__ not in inside]


if __name__ == "__main__":
    compile_all()
