"""Temporary folders, and what is left of those whose processes were killed.

A folder is locked for as long as it is in use, and the lock goes with the process that holds it, however that
ends. So the first folder that a process makes comes with a sweep of those beside it that are no longer locked.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import tempfile
import weakref
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType

from vocabfold.errors import InputError
from vocabfold.io.folders.locks import OWN_FOLDER, Held, open_locked
from vocabfold.support import checks

# Machines may share a folder and not see each other's locks.
_PREFIX = f"vocabfold-{re.sub(r'[^A-Za-z0-9.-]', '-', platform.node())}-"
_UNLOCKED = "vocabfold."  # folders where there are no locks
_NAME = re.compile(rf"{re.escape(_PREFIX)}[a-z0-9_]{{8}}")


class TemporaryFolder:
    """A folder that is removed when nothing refers to it any more.

    Unlike tempfile's own, it goes without a warning, not with a process that was forked, and if its process is
    killed, with the next one that needs such a folder.
    """

    def __init__(self) -> None:
        try:
            _sweep(tempfile.gettempdir())
            self.path, held = _make()
        except OSError as error:
            raise InputError(
                f"temporary files cannot be written: {checks.reason(error)}; set TMPDIR to a folder with room."
            ) from error
        self._removal = weakref.finalize(self, _remove, self.path, held, os.getpid())

    def __enter__(self) -> Path:
        return self.path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the folder now."""
        self._removal()


def _make() -> tuple[Path, Held | None]:
    """Make a folder and lock it, where that can be done."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        try:
            held = _hold(path)
        except (BlockingIOError, FileNotFoundError):  # it was taken for one that is left, as it had no lock yet
            continue
        except OSError:
            os.rmdir(path)
            raise
        if held is not None:
            return path, held
        os.rmdir(path)
        return Path(tempfile.mkdtemp(prefix=_UNLOCKED)), None  # these are never swept


def _hold(path: Path) -> Held | None:
    """Lock a folder that nobody has locked, if there are locks."""
    if os.name != "posix":
        return None  # where folders cannot be opened
    held = open_locked(path, OWN_FOLDER)
    if held.is_locked:
        return held
    os.close(held.descriptor)
    return None


@cache  # once for a process is enough
def _sweep(parent: str) -> None:
    """Remove folders of this user that processes left behind."""
    if os.name != "posix":
        return  # nothing is known of other processes
    found = []
    with suppress(OSError):  # not everyone may look at what is there
        found = [Path(parent, name) for name in os.listdir(parent) if _NAME.fullmatch(name)]
    for path in found:
        with suppress(OSError):  # it is in use, or gone, or no folder
            if path.lstat().st_uid == os.getuid() and (held := _hold(path)) is not None:
                _remove(path, held, os.getpid())


def _remove(path: Path, held: Held | None, owner: int) -> None:
    if os.getpid() == owner:  # and not a process that was forked from it
        shutil.rmtree(path, ignore_errors=True)
        if held is not None:
            os.close(held.descriptor)
