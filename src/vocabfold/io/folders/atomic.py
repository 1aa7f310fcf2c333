"""A finished file takes the place of another one: readers find the old one or the new one."""

from __future__ import annotations

import os
from pathlib import Path


def put_in_place(finished: Path, path: Path) -> None:
    """Rename a file, after its bytes have reached the disk; then see to it that its new name has, too."""
    _sync(finished, os.O_RDWR)
    os.replace(finished, path)
    if os.name == "posix":  # elsewhere folders cannot be opened
        _sync(path.parent, os.O_RDONLY)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
