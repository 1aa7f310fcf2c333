"""What the checks use of the tests: the judge of folds, Java, a session of Spark."""

import sys

from tools.record import ROOT

sys.path.insert(0, str(ROOT / "tests"))

from support import java, reference  # noqa: E402
from support.session import session  # noqa: E402

__all__ = ["java", "reference", "session"]
