"""Locks of files and folders, which go with the process that holds them, however it ends."""

from __future__ import annotations

import errno
from contextlib import suppress

try:
    import fcntl
except ImportError:  # Windows: there, nobody is kept apart
    fcntl = None  # type: ignore[assignment]

_NO_LOCKS = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOLCK, errno.EINVAL)


def lock(descriptor: int) -> bool:
    """Lock an open file or folder; False, where the system knows no locks, an error, if someone else has it.

    Raises
    ------
    BlockingIOError
        Someone else has locked it.
    """
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _NO_LOCKS:  # some file systems of clusters
            return False
        raise
    return True


def unlock(descriptor: int) -> None:
    """Give a lock back: closing is not enough, if a process was forked meanwhile."""
    if fcntl is not None:
        with suppress(OSError):  # where there are no locks
            fcntl.flock(descriptor, fcntl.LOCK_UN)
