"""Where Java is, for the tests on Spark."""

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

NEEDED = 17
NOT_RUN = (
    f"the tests on Spark were not run: there is no Java {NEEDED} or newer; `make setup-system` installs it"
)


@cache
def home():
    """Return the folder of the first Java that is new enough: as JAVA_HOME says, on the PATH, or of Debian."""
    places = [
        os.environ.get("JAVA_HOME", ""),
        *sorted(map(str, Path("/usr/lib/jvm").glob("java-*")), reverse=True),
    ]
    on_path = shutil.which("java")
    if on_path:
        places.insert(1, str(Path(on_path).resolve().parents[1]))
    return next((place for place in places if place and _version(Path(place)) >= NEEDED), None)


def _version(place):
    java = place / "bin" / "java"
    if not java.is_file():
        return 0
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else 0


if __name__ == "__main__":
    place = home()
    print(f"Java for Spark: {place}" if place else f"no Java {NEEDED} or newer is here yet")
    raise SystemExit(place is None)
