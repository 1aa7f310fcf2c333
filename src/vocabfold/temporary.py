"""Temporary folders: they go with the process that made them, and not with one that was forked from it."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path


class TemporaryFolder:
    """A folder that is removed when it is told to be, or when nothing refers to it any more.

    Unlike tempfile's own, it goes without a warning, and not when a process ends that was forked.
    """

    def __init__(self, prefix: str = "vocabfold-") -> None:
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        self.remove = weakref.finalize(self, _remove, self.path, os.getpid())

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.remove()


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
