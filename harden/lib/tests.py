"""Where the tests are, and what the checks use of them: the judge of folds, Java, a session of Spark."""

import sys
from contextlib import AbstractContextManager
from typing import Any

from tools.record import ROOT

FOLDER = ROOT / "tests"
sys.path.insert(0, str(FOLDER))

import java  # noqa: E402, F401
import reference  # noqa: E402, F401


def find(*names: str) -> list[str]:
    """Return the paths of test modules, each by what follows `test_` in its name, wherever they are."""
    found = {name: [*FOLDER.rglob(f"test_{name}.py")] for name in names}
    assert all(len(paths) == 1 for paths in found.values()), f"not one module each: {found}"
    return [path.relative_to(ROOT).as_posix() for (path,) in found.values()]


def session(*options: Any) -> AbstractContextManager[Any]:
    """Begin a session of Spark as the tests do."""
    import conftest

    return conftest.session(*options)
