"""How many small changes of the code the tests notice: mutants of five modules, made by cosmic-ray.

The operators of cosmic-ray are applied wherever possible (`+` becomes `-`, `<` becomes `<=`, 1 becomes 2, a
condition is negated, a loop has no iteration, ...). If there are many of one kind for one place, such as the
eleven alternatives to a `+`, three are drawn. A change of an annotation alone is no mutant, nor is code that
Python itself warns of. Each mutant gets a process of its own, forked from one that has loaded all libraries. It
runs the tests of its module, without the compiler of kernels, until one of them fails: the mutant is killed.
Too much time or memory kills it as well.

`score` is the percentage of killed mutants; a module fails below 85. Mutants that no test can kill, because
they do the same by other means, count as survivors. The log lists all survivors.
"""

import ast
import gc
import importlib.util
import math
import os
import random
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from typing import Any

from harden.lib import harness
from tools.record import ROOT, Row

TARGET = 85.0  # percent
VARIANTS = 3  # of one kind for one place
SMALL_MUTANTS = 6
SMALL_TARGET = 50.0  # so few are no measure: that most of them are killed shows that all this works
MEMORY = 12 << 30  # bytes of addresses: a mutant may ask for any amount

# For each module the tests that can kill mutants, without those that take long or start processes.
TESTS = {
    "folding/curve": ["tests/folding/test_curve.py"],
    "folding/allocation": [
        "tests/folding/test_allocation.py",
        "tests/folding/test_methods.py::test_shards_are_bounded_by_the_ids_and_a_lost_guarantee_is_told",
    ],
    "folding/likelihood": ["tests/folding/test_likelihood.py", "-k", "not no_other_prior and not no_signal"],
    "folding/prior": ["tests/folding/test_prior.py"],
    "codebook/codebook": ["tests/codebook/test_codebook.py", "-k", "not change_a_byte and not killed_save"],
}
# What the package and its tests import: loaded once, before anything is forked.
LIBRARIES = ["numpy", "numba", "scipy.optimize", "pyarrow.parquet", "duckdb", "hypothesis", "pytest", "pdb"]
MORE_LIBRARIES = {"codebook/codebook": ["pandas", "polars"]}
OPTIONS = ["-x", "-q", "--assert=plain", "-o", "addopts=", "-p", "no:cacheprovider"]
OPTIONS += ["-p", "_hypothesis_pytestplugin", "--hypothesis-profile=mutants"]
OPTIONS += ["-m", "not slow and not jit and not spark and not browser"]


@dataclass(frozen=True)
class Mutant:
    """A module with one change."""

    code: str
    change: str  # the lines that differ, as they were and as they are
    line: int


def run(small: bool) -> Iterator[Row]:
    """Try the mutants of each module."""
    if importlib.util.find_spec("cosmic_ray") is None:
        yield {"what": "mutants", "not_run": "cosmic-ray is not installed: pip install 'vocabfold[harden]'"}
        return
    os.environ |= {"NUMBA_DISABLE_JIT": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    sys.path.insert(0, str(ROOT / "src"))
    for library in LIBRARIES:
        importlib.import_module(library)
    _prepare_tests()
    for name in ["folding/curve"] if small else TESTS:
        for library in MORE_LIBRARIES.get(name, []):
            importlib.import_module(library)
        gc.freeze()  # what there is by now is not searched for garbage in every child
        yield _try_all(name, small)
        gc.unfreeze()


def _try_all(name: str, small: bool) -> Row:
    path = ROOT / "src" / "vocabfold" / f"{name}.py"
    source = path.read_text(encoding="utf-8")
    started, used = time.monotonic(), _used()
    said = _outcome(name, path, source, 0)
    if said != "survived":
        return {"what": name, "tried": 1, "failed": 1, "first_failure": f"the code as it is: {said}"}
    limit = math.ceil(3 * (_used() - used)) + 2  # seconds of a processor, as others may keep it busy
    counted = Counter[str]()
    survivors = []
    for mutant in _mutants(source, small):
        said = _outcome(name, path, mutant.code, limit)
        counted[said] += 1
        if said == "survived":
            survivors.append(f"{mutant.line}: {mutant.change}")
            print(f"{name}.py:{survivors[-1]}", file=sys.stderr, flush=True)
    score = 100 * (1 - counted["survived"] / counted.total())
    return {
        "what": f"mutants of {name}.py",
        "tried": counted.total(),
        "failed": int(score < (SMALL_TARGET if small else TARGET)),
        "score": round(score, 2),
        "killed": counted["killed"],
        "timed_out": counted["timed out"],
        "survived": counted["survived"],
        "seconds": round(time.monotonic() - started, 1),
        "survivors": "; ".join(survivors),
    }


def _mutants(source: str, small: bool) -> Iterator[Mutant]:
    """Yield what cosmic-ray makes of a module, each once, and only what changes more than annotations."""
    from cosmic_ray import plugins
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code

    generator = random.Random(0)
    nodes = list(ast_nodes(get_ast(source)))
    places = defaultdict(list)
    for operator_name in sorted(plugins.operator_names()):
        operator = plugins.get_operator(operator_name)
        if not operator.arguments():  # the others are told which variables to replace
            found = [place for node in nodes for place in operator().mutation_positions(node)]
            kind = operator_name.split("_")[0]
            for occurrence, (start, end) in enumerate(found):
                places[start, end, kind].append((operator, occurrence, start[0]))
    drawn = [one for all in places.values() for one in generator.sample(all, min(VARIANTS, len(all)))]
    if small:
        drawn = generator.sample(drawn, SMALL_MUTANTS)
    known = {_meaning(source)}
    for operator, occurrence, line in drawn:
        code = mutate_code(source, operator(), occurrence)
        meaning = _meaning(code)
        if meaning and meaning not in known:
            known.add(meaning)
            yield Mutant(code, _change(source, code), line)


def _meaning(code: str) -> str:
    """Return what is left of code without comments and annotations; nothing if Python objects to it."""
    try:
        with warnings.catch_warnings(action="error"):
            compile(code, "", "exec")
    except SyntaxError:
        return ""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
        elif isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef):
            node.returns = None
    return ast.dump(tree)


def _change(before: str, after: str) -> str:
    old, new = before.splitlines(), after.splitlines()
    first = next(i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b)
    same = next(i for i, (a, b) in enumerate(zip(old[::-1], new[::-1], strict=False)) if a != b)
    was, became = (" ".join(" ".join(lines[first : len(lines) - same]).split()) for lines in (old, new))
    return f"{was} -> {became}"


def _outcome(name: str, path: Path, code: str, limit: int) -> str:
    """Run the tests of a module with other code, in a process of its own, and say what became of it."""
    module = f"vocabfold.{name.replace('/', '.')}"
    assert module not in sys.modules, "or children would find the module as it is"
    with tempfile.TemporaryDirectory() as folder:
        child = os.fork()
        if not child:
            try:
                _run_tests(_Loader(module, str(path), code), TESTS[name], limit, folder)
            finally:
                os._exit(1)  # whatever went wrong, the parent's work is not done twice
        _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGALRM):
        return "timed out"
    return "survived" if status == 0 else "killed"


def _run_tests(loader: "_Loader", tests: list[str], limit: int, folder: str) -> None:
    import pytest

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if limit:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        signal.alarm(20 * limit)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.chdir(ROOT)
    sys.meta_path.insert(0, loader)
    os._exit(pytest.main([*tests, *OPTIONS, f"--basetemp={folder}/pytest"], plugins=[_Hurried()]))


class _Hurried:
    """Ends the process when the first test fails: nothing is to be cleaned up or told."""

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            os._exit(1)


class _Loader(SourceFileLoader):
    """Finds a module where it is, and loads other code in its place."""

    def __init__(self, name: str, path: str, code: str):
        super().__init__(name, path)
        self._code = code

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(name, self.path, loader=self)

    def get_code(self, fullname: str) -> Any:
        return compile(self._code, self.path, "exec")


def _prepare_tests() -> None:
    """Load what pytest is made of, and tell hypothesis to be brief."""
    from _pytest.config import default_plugins
    from hypothesis import HealthCheck, Phase, settings

    for plugin in default_plugins:
        importlib.import_module(f"_pytest.{plugin}")
    settings.register_profile(
        "mutants",
        max_examples=20,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.explicit, Phase.generate),  # a failure is all there is to know
        suppress_health_check=list(HealthCheck),
    )


def _used() -> float:
    told = resource.getrusage(resource.RUSAGE_CHILDREN)
    return told.ru_utime + told.ru_stime


if __name__ == "__main__":
    harness.main("mutants", __doc__, run)
