"""Locks of files and folders, which go with the process that holds them, however it ends."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

try:
    import fcntl
except ImportError:  # Windows: there are no locks
    fcntl = None  # type: ignore[assignment]

_NO_LOCKS = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOLCK, errno.EINVAL)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
"""How a folder is opened to be locked."""
OWN_FOLDER = FOLDER | _NOFOLLOW
"""The same, but not through a link."""
NEW_FILE = os.O_RDWR | os.O_CREAT | _NOFOLLOW
"""How a file is opened that may not exist yet; not through a link, which anyone may have put there."""


class Moved(FileNotFoundError):
    """What was opened is no longer at its path."""


class Held(NamedTuple):
    """An open file or folder, and whether it is locked: not every file system has locks."""

    descriptor: int
    is_locked: bool

    def release(self) -> None:
        """Unlock and close it: closing is not enough, if a process was forked meanwhile."""
        if fcntl is not None:
            with suppress(OSError):  # where there are no locks
                fcntl.flock(self.descriptor, fcntl.LOCK_UN)
        os.close(self.descriptor)


def open_locked(path: Path, flags: int) -> Held:
    """Open what is at a path, and lock it.

    Raises
    ------
    BlockingIOError
        Another process has locked it.
    Moved
        The last holder of the lock has moved or removed it; try again.
    """
    descriptor = os.open(path, flags, 0o666)
    try:
        is_locked = _lock(descriptor)
        if not _is_at(descriptor, path, follow_symlinks=not flags & _NOFOLLOW):
            raise Moved(errno.ENOENT, "it was moved meanwhile", str(path))
    except BaseException:
        os.close(descriptor)
        raise
    return Held(descriptor, is_locked)


def _is_at(descriptor: int, path: Path, *, follow_symlinks: bool) -> bool:
    """Tell whether an open file or folder is what is at a path now."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=follow_symlinks))
    except FileNotFoundError:
        return False


def _lock(descriptor: int) -> bool:
    """Lock an open file or folder; False, where the system has no locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _NO_LOCKS:  # some file systems of clusters
            return False
        raise
    return True
