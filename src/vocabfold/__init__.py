"""Fold huge categorical vocabularies into a few ids that keep their information about a binary label.

>>> import vocabfold as vf
>>> vf.fold(neg=[90, 45, 10, 70, 20], pos=[10, 5, 30, 30, 80], size=3).ids
array([0, 0, 2, 1, 2], dtype=int32)

`count` counts rows, `fit` folds the counts into a codebook, `load_counts` and `load` read both back;
`fit_transform` also encodes the rows for a model to be trained on; `compare` tries every method on the same
counts. On bare numbers, `fold` folds one column, `fold_table` several under one budget, and `curve` gives the
optimum for every size. `VocabularyCompressor` is a transformer for scikit-learn.
"""

import importlib as _importlib
import typing as _typing

if _typing.TYPE_CHECKING:
    from vocabfold.codebook.codebook import Codebook
    from vocabfold.codebook.saved import load
    from vocabfold.counts.counting import count
    from vocabfold.counts.counts import Counts
    from vocabfold.counts.saved import load_counts
    from vocabfold.encoding.files import Transformed
    from vocabfold.encoding.fit_transform import fit_transform
    from vocabfold.errors import (
        AdviceWarning,
        CodebookError,
        InputError,
        MissingDependency,
        VocabfoldError,
        VocabfoldWarning,
        WrongType,
    )
    from vocabfold.evaluation.comparison import compare
    from vocabfold.fitting.fitting import fit
    from vocabfold.folding.api import curve, fold, fold_table
    from vocabfold.folding.results import Fold, FoldTable
    from vocabfold.interfaces.sklearn.estimator import VocabularyCompressor

__version__ = "0.1.0.dev0"
__all__ = [
    "AdviceWarning",
    "Codebook",
    "CodebookError",
    "Counts",
    "Fold",
    "FoldTable",
    "InputError",
    "MissingDependency",
    "Transformed",
    "VocabfoldError",
    "VocabfoldWarning",
    "VocabularyCompressor",
    "WrongType",
    "compare",
    "count",
    "curve",
    "fit",
    "fit_transform",
    "fold",
    "fold_table",
    "load",
    "load_counts",
]

_MODULES = {
    "AdviceWarning": "errors",
    "Codebook": "codebook.codebook",
    "CodebookError": "errors",
    "Counts": "counts.counts",
    "Fold": "folding.results",
    "FoldTable": "folding.results",
    "InputError": "errors",
    "MissingDependency": "errors",
    "Transformed": "encoding.files",
    "VocabfoldError": "errors",
    "VocabfoldWarning": "errors",
    "VocabularyCompressor": "interfaces.sklearn.estimator",
    "WrongType": "errors",
    "compare": "evaluation.comparison",
    "count": "counts.counting",
    "curve": "folding.api",
    "fit": "fitting.fitting",
    "fit_transform": "encoding.fit_transform",
    "fold": "folding.api",
    "fold_table": "folding.api",
    "load": "codebook.saved",
    "load_counts": "counts.saved",
}


def __getattr__(name: str) -> _typing.Any:
    """Import a public name when it is first used, so that `import vocabfold` stays light."""
    if name not in _MODULES:
        raise AttributeError(f"module 'vocabfold' has no attribute {name!r}")
    value = getattr(_importlib.import_module(f"vocabfold.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
