"""What is touched while a folder is used: as Python's audit hook sees it, and as strace does."""

import os
import re
import sys
import tempfile
from typing import Any

from tools.record import ROOT

# What may be touched besides the folder itself, by how its path begins, with a slash at its end: parts of
# Python and of ours, limits of the machine, temporary folders.
OWN = (f"{sys.prefix}/", f"{sys.base_prefix}/", f"{ROOT}/")
LIMITS = ("/proc/self/cgroup/", "/proc/meminfo/", "/sys/fs/cgroup/", "/sys/devices/system/")
_TEMPORARY = f"{tempfile.gettempdir()}/vocabfold-"
_LOOKS = re.compile(r"\w*stat\w*|f?access\w*|readlink\w*|getcwd")  # calls that neither open nor change anything
_TOUCHES = re.compile(r"open(at2?)?|(mk|rm)dir(at)?|unlink(at)?")  # calls that are right in the right places


def audited(event: str, args: tuple[Any, ...], place: str, strange: list[str]) -> None:
    """Note what no codebook may bring about."""
    if not place:
        return
    is_imported = event == "exec" and args[0].co_filename.startswith((*OWN, "<frozen"))
    # numba keeps compiled loops as pickles, in the package's own folder.
    is_imported = is_imported or (event == "pickle.find_class" and _is_called_by("numba"))
    is_code = event in ("exec", "compile", "pickle.find_class") and not is_imported
    if is_code or event.startswith(
        ("subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.", "ctypes.dlopen")
    ):
        strange.append(f"{event} {str(args)[:200]}")
    if event in ("open", "os.remove", "os.rename", "os.mkdir", "os.rmdir", "shutil.rmtree") and isinstance(
        args[0], str | bytes
    ):
        path = os.path.abspath(os.fsdecode(args[0]))  # without `..`
        if not f"{path}/".startswith((f"{place}/", _TEMPORARY, *LIMITS, *OWN)):
            strange.append(f"{event} {path}")


def _is_called_by(package: str) -> bool:
    """Tell whether code of a package is at work."""
    frame = sys._getframe()
    while frame and f"/{package}/" not in frame.f_code.co_filename:
        frame = frame.f_back
    return frame is not None


def is_strange(line: str, readable: tuple[str, ...]) -> bool:
    """Tell whether a line of strace is more than a look, a file opened to be read, or a temporary file."""
    call = re.match(r"(?:\d+ +)?(?:<\.\.\. )?([a-z_]\w*)", line)
    if call is None or _LOOKS.fullmatch(call[1]):
        return False
    # Each path with the folder that it begins in, and what was opened in the end, through whatever links.
    paths = re.findall(r'(?:<([^<>]*)>, )?"((?:[^"\\]|\\.)*)"', line)
    paths += re.findall(r" = \d+<()(/[^>]*)>", line)
    found = [os.path.normpath(ROOT / folder / path) + "/" for folder, path in paths]
    # The rest of a call that another thread interrupted says no more how; its beginning did.
    is_reading = re.search(r" resumed>|O_RDONLY(?!.*O_(CREAT|TRUNC))", line)
    allowed = (_TEMPORARY, *(readable if is_reading else ()))
    return not _TOUCHES.fullmatch(call[1]) or not all(
        re.sub(r"^/proc/\d+/", "/proc/self/", path).startswith(allowed) for path in found
    )
