"""Fold huge categorical vocabularies into a few ids that keep what they tell about a binary label."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vocabfold.errors import InputError, VocabfoldError
    from vocabfold.folding import Fold, FoldTable, curve, fold, fold_table

__version__ = "0.1.0.dev0"
__all__ = ["Fold", "FoldTable", "InputError", "VocabfoldError", "curve", "fold", "fold_table"]

_MODULES = {
    "Fold": "folding",
    "FoldTable": "folding",
    "InputError": "errors",
    "VocabfoldError": "errors",
    "curve": "folding",
    "fold": "folding",
    "fold_table": "folding",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import vocabfold` stays light."""
    if name not in _MODULES:
        raise AttributeError(f"module 'vocabfold' has no attribute {name!r}")
    value = getattr(import_module(f"vocabfold.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
