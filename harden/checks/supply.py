"""What users install: the wheel and the sdist, with the oldest and the newest packages that they allow.

The rows:

- `archives`: wheel and sdist are built twice. The same source gives the same bytes, and the sdist alone gives
  the same wheel. The wheel contains every module, `py.typed` and the page's files, and nothing else.
- `install`: each is installed into an empty environment, in which the first example of the README, the demo and
  the command line run, and `import vocabfold` loads nothing heavy.
- `lowest`: an environment with exactly the lowest version of every direct dependency that pyproject.toml
  allows; `newest` and `pre-releases`: with today's newest versions. `pip check` passes, and so do the tests
  that depend on other packages, on the installed wheel.
- `python`: the same with other interpreters that pyproject.toml allows, if the machine has them.
- `audit`: known vulnerabilities of the newest packages.

Spark has a row of its own. The browser, the linters and LightGBM, which are part of the extra `test`, are left
out, because nobody gets them with vocabfold. `tried` counts files, commands or tests.
"""

import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from harden.lib import harness
from harden.lib.supply.environments import (
    EXTRAS,
    PROJECT,
    Environment,
    Failed,
    command,
    direct,
    lowest,
    name_of,
)
from harden.lib.tests import java
from tools.record import ROOT, Row

INTERPRETERS = ("3.11", "3.12", "3.13", "3.14")
EPOCH = "1577836800"  # a date for all files of an archive
HEAVY = ("numba", "numpy", "duckdb", "pyarrow", "rich", "typer", "sklearn", "scipy", "jinja2", "vl_convert")

# The tests that lean on dependencies: engines, frames, kernels, the doors, the page, the plots.
TESTS = ("counts", "codebook", "encoding", "folding/test_api.py", "interfaces", "io/folders")
TESTS += ("common/test_progress.py", "report/test_report.py", "report/test_report_summary.py")
FEW_TESTS = ("counts/test_counts.py", "codebook", "folding/test_api.py", "common/test_progress.py")  # elsewhere


def row(what: str, tried: int, failures: Sequence[str], begun: float, **figures: Any) -> Row:
    """Return the row of what was tried."""
    first = {"first_failure": " ".join(failures[0].split())} if failures else {}
    seconds = round(time.monotonic() - begun, 1)
    return {"what": what, "tried": tried, "failed": len(failures), "seconds": seconds, **figures, **first}


# ------------------------------------------------------------------------------ archives


def look_into_wheel(wheel: Path) -> tuple[int, list[str]]:
    """Return how many files a wheel must hold or may, and which it lacks or has too many."""
    sources = [
        path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".html", ".css", ".js", ".typed")
    ]
    needed = {path.relative_to(ROOT / "src").as_posix() for path in sources}
    needed |= {
        f"vocabfold/{name}" for name in ("py.typed", "report/page.html", "report/page.css", "report/page.js")
    }
    with zipfile.ZipFile(wheel) as archive:
        found = set(archive.namelist())
        metadata = archive.read(next(name for name in found if name.endswith(".dist-info/METADATA"))).decode()
    info = wheel.name.rsplit("-", 3)[0] + ".dist-info"
    about = {
        f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")
    }
    failures = [f"{name} is missing" for name in sorted((needed | about) - found)]
    failures += [f"{name} should not be there" for name in sorted(found - needed - about)]
    for line in (
        f"Requires-Python: {PROJECT['requires-python']}",
        *(f"Provides-Extra: {each}" for each in EXTRAS),
    ):
        if line not in metadata.splitlines():
            failures.append(f"its metadata lack {line!r}")
    return len(found | needed | about) + 1 + len(EXTRAS), failures


def look_into_sdist(sdist: Path) -> tuple[int, list[str]]:
    """Return how many files an sdist holds, and what it lacks or has too much."""
    with tarfile.open(sdist) as archive:
        found = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    needed = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "src/vocabfold/py.typed", "PKG-INFO"}
    needed |= {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("*.py")}
    strange = [name for name in found if re.search(r"__pycache__|\.nb[ic]$|(^|/)\.(?!gitignore)", name)]
    failures = [f"{name} is missing" for name in sorted(needed - found)]
    return len(found), failures + [f"{name} should not be there" for name in sorted(strange)]


def alone(out: Path) -> Path:
    """Build the wheel with the build backend of this environment, without a network."""
    code = "import sys, hatchling.build as backend; print(backend.build_wheel(sys.argv[1]))"
    command(sys.executable, "-c", code, out, SOURCE_DATE_EPOCH=EPOCH)
    return next(out.glob("*.whl"))


def archives(tools: Environment, folder: Path) -> Iterator[Row]:
    """Build everything twice, and look into it."""
    begun, failures = time.monotonic(), []
    outs = [folder / name for name in ("dist", "again")]
    for out in outs:  # the sdist first, and the wheel from it
        command(tools.python, "-m", "build", "--outdir", out, ROOT, SOURCE_DATE_EPOCH=EPOCH)
    command(
        tools.python, "-m", "build", "--wheel", "--outdir", folder / "direct", ROOT, SOURCE_DATE_EPOCH=EPOCH
    )
    wheels = [next((folder / name).glob("*.whl")) for name in ("dist", "again", "direct")]
    sdists = [next(out.glob("*.tar.gz")) for out in outs]
    if len({path.read_bytes() for path in wheels[:2]}) > 1:
        failures.append("two wheels of one source differ")
    if wheels[0].read_bytes() != wheels[2].read_bytes():
        failures.append("the wheel from the sdist is not that from the source")
    if len({path.read_bytes() for path in sdists}) > 1:
        failures.append("two sdists of one source differ")
    yield row("archives: built twice, and the wheel from the sdist alone", 3, failures, begun)
    begun = time.monotonic()
    n_files, failures = look_into_wheel(wheels[0])
    yield row("wheel: what it holds", n_files, failures, begun, kilobytes=wheels[0].stat().st_size // 1000)
    begun = time.monotonic()
    n_files, failures = look_into_sdist(sdists[0])
    yield row("sdist: what it holds", n_files, failures, begun, kilobytes=sdists[0].stat().st_size // 1000)


# ------------------------------------------------------------------------------ installed


def installed(archive: Path, folder: Path) -> Iterator[Row]:
    """Install an archive into an empty environment, and do what the README does first."""
    begun, failures = time.monotonic(), []
    place = folder / f"used-{archive.suffix[1:]}"
    place.mkdir()
    example = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert example, "the README has no example"
    (place / "example.txt").write_text(example[1], encoding="utf-8")
    light = (
        "import sys, vocabfold; heavy = sorted(set(sys.modules) & set(sys.argv[1:])); "
        "sys.exit(f'Error: import vocabfold loads {heavy}' if heavy else 0)"
    )
    fold = "import vocabfold as vf; assert vf.fold([9, 1, 5], [1, 9, 5], 2).size == 2"
    steps: list[Sequence[str | Path]] = []
    try:
        environment = Environment(folder / f"venv-{archive.suffix[1:]}")
        environment.install(f"{archive}[demo]")
        program = environment.bin / "vocabfold"
        steps = [
            (environment.python, "-m", "pip", "check"),
            (environment.python, "-c", light, *HEAVY),
            (environment.python, "-c", fold),
            (program, "--help"),
            (program, "demo"),
            (environment.python, "-m", "doctest", "example.txt"),
            (program, "inspect", "flights-book", "--feature", "carrier"),
        ]
    except Failed as error:
        failures.append(str(error))
    for words in steps:
        try:
            command(*words, folder=place)
        except Failed as error:
            failures.append(str(error))
    yield row(f"install: {archive.suffix[1:]} into an empty environment", 1 + len(steps), failures, begun)


def trial(
    what: str,
    folder: Path,
    wheel: Path,
    requirements: Sequence[str],
    tests: Sequence[str],
    *,
    interpreter: str = sys.executable,
    pre: bool = False,
    chosen: str = "not slow and not spark and not browser and not java",
    processes: int = 2,
    ignored: Sequence[str] = (),
) -> Iterator[Row]:
    """Install the wheel with some versions of its dependencies, and run tests on it."""
    begun = time.monotonic()
    figures: dict[str, Any] = {}
    try:
        environment = Environment(folder, interpreter)
        environment.install(str(wheel), *requirements, pre=pre)
        shown = [*PROJECT["dependencies"], *EXTRAS["spark"]]
        figures["versions"] = environment.versions([name_of(each) for each in shown])
        command(environment.python, "-m", "pip", "check")
    except Failed as error:
        yield row(what, 1, [str(error)], begun, **figures)
        return
    results = folder / "results.xml"
    files = [ROOT / "tests" / name for name in tests]
    options = ["-q", "-n", str(processes), "-m", chosen, "-p", "no:cacheprovider", f"--junitxml={results}"]
    options += [f"-Wignore::{warning}" for warning in ignored]
    try:
        storage = {"HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis")}
        command(environment.python, "-m", "pytest", *options, *files, **storage)
    except Failed as error:
        if not results.exists():
            yield row(what, 1, [str(error)], begun, **figures)
            return
    cases = list(ElementTree.parse(results).iter("testcase"))
    failures = [
        f"{case.get('name')}: {part.get('message') or part.tag}"[:300]
        for case in cases
        for part in case
        if part.tag in ("failure", "error")
    ]
    n_skipped = sum(part.tag == "skipped" for case in cases for part in case)
    yield row(what, len(cases) - n_skipped + 1, failures, begun, **figures)


def _spark(folder: Path, wheel: Path, requirements: Sequence[str]) -> Iterator[Row]:
    """Run the tests on Spark with the oldest one that is allowed."""
    what = "lowest: the oldest Spark that is allowed"
    if not harness.is_wanted(what):
        return
    if java.home() is None:
        yield {"what": what, "not_run": "there is no Java on this machine"}
        return
    spark = [lowest(each) for each in EXTRAS["spark"]]
    yield from trial(
        what,
        folder / "spark",
        wheel,
        [*requirements, *spark],
        ("spark",),
        chosen="spark and not slow",
        processes=0,  # one session serves all
        ignored=(
            "ResourceWarning",
            "pytest.PytestUnraisableExceptionWarning",
        ),  # pyspark 4.0 leaves sockets open
    )


def other_interpreters(folder: Path, wheel: Path) -> Iterator[Row]:
    """Run some tests with every other Python that is allowed and here."""
    for version in INTERPRETERS:
        if sys.version_info[:2] == tuple(map(int, version.split("."))):
            continue
        what = f"python {version}: the newest packages"
        program = _interpreter(version)
        if program is None:
            yield {"what": what, "not_run": f"there is no Python {version} on this machine"}
            continue
        yield from trial(what, folder / f"python-{version}", wheel, direct(), FEW_TESTS, interpreter=program)


def _interpreter(version: str) -> str | None:
    """Return a Python of some version that works: a shim of a version manager may only say that it does not."""
    homes = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"), reverse=True)
    for program in (*homes, shutil.which(f"python{version}")):
        if program and not subprocess.run([program, "-c", ""], capture_output=True, check=False).returncode:
            return str(program)
    return None


# ------------------------------------------------------------------------------ audit


def audit(tools: Environment, environment: Path) -> Iterator[Row]:
    """Ask whether any package has a known vulnerability, of the services that can be reached."""
    what = "audit: known vulnerabilities of the newest packages"
    begun = time.monotonic()
    packages = next(environment.glob("lib/python*/site-packages"), None)
    if packages is None:
        yield {"what": what, "not_run": "there is no environment with the newest packages"}
        return
    for service in ("osv", "pypi"):
        words = [tools.bin / "pip-audit", "--path", packages, "-s", service, "-f", "json"]
        options = ["--progress-spinner", "off", "--timeout", "15"]
        done = subprocess.run([*map(str, words), *options], capture_output=True, text=True, check=False)
        try:
            found = json.loads(done.stdout)["dependencies"]
        except (ValueError, KeyError):
            continue
        audited = [each for each in found if "vulns" in each]
        if len(audited) < len(found) / 2:  # a mirror that knows nothing finds nothing
            continue
        failures = [
            f"{each['name']} {each['version']}: {vulnerability['id']}"
            for each in audited
            for vulnerability in each["vulns"]
        ]
        yield row(what, len(audited), failures, begun, service=service)
        return
    yield {"what": what, "not_run": "no service with advisories can be reached from this machine"}


# ------------------------------------------------------------------------------ all of it


def run(small: bool) -> Iterator[Row]:
    """Build, install, test and audit."""
    folder = Path(tempfile.mkdtemp(prefix="harden-supply-"))
    try:
        if small:
            yield from _small(folder)
            return
        try:
            tools = Environment(folder / "tools")
            tools.install(*(each for each in EXTRAS["harden"] if name_of(each) in ("build", "pip-audit")))
        except Failed as error:
            yield {"what": "supply", "not_run": f"the tools cannot be installed: {error}"}
            return
        yield from archives(tools, folder)
        wheel = next((folder / "dist").glob("*.whl"))
        if harness.is_wanted("install: whl"):
            yield from installed(wheel, folder)
        what, exact = "lowest: the oldest packages that are allowed", [lowest(each) for each in direct()]
        if harness.is_wanted(what):
            yield from trial(what, folder / "lowest", wheel, exact, TESTS)
        yield from _spark(folder, wheel, exact)
        yield {
            "what": "lowest: torch and optuna, of the extra learn",
            "not_run": "only examples use them, and old releases of torch bring gigabytes",
        }
        if not harness.is_wanted("newest"):  # all that follows comes with it
            return
        yield from trial("newest: the newest packages", folder / "newest", wheel, direct(), TESTS)
        yield from trial(
            "pre-releases: the newest packages", folder / "pre", wheel, direct(), FEW_TESTS, pre=True
        )
        yield from installed(next((folder / "dist").glob("*.tar.gz")), folder)
        yield from other_interpreters(folder, wheel)
        yield from audit(tools, folder / "newest")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _small(folder: Path) -> Iterator[Row]:
    """Build the wheel alone, and look into it."""
    what = "wheel: what it holds"
    if find_spec("hatchling") is None:
        yield {"what": what, "not_run": "hatchling is not installed: pip install '.[harden]'"}
        return
    begun = time.monotonic()
    try:
        n_files, failures = look_into_wheel(alone(folder))
    except Failed as error:
        n_files, failures = 1, [str(error)]
    yield row(what, n_files, failures, begun)


if __name__ == "__main__":
    harness.main("supply", __doc__, run)
