import ast
import errno
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import pytest
from numba.core.compiler_lock import global_compiler_lock

import vocabfold
from vocabfold.support import kernels

ROOT = Path(vocabfold.__file__).parent
COMPILER = Path(kernels.__file__)
# `gain` is compiled into `gain_between`, which is in another file.
CODE = """
import numpy as np
from vocabfold.folding.solve.cut_tree import gain_between
print(gain_between(np.array([0, 1, 4]), np.array([0, 2, 3]), 0, 1, 2), bool(gain_between.stats.cache_hits))
"""
RESULT = pytest.approx(0.6214736495436)


def begin(package, cache):
    """Begin a process that computes something with a copy of the package."""
    environment = os.environ | {"PYTHONPATH": str(package), "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.Popen([sys.executable, "-c", CODE], env=environment, stdout=subprocess.PIPE, text=True)


def end(process):
    """Return what a process computed, and whether it found the kernel compiled."""
    output = process.communicate(timeout=300)[0]
    assert process.returncode == 0
    result, was_there = output.split()
    return float(result), was_there == "True"


@pytest.mark.jit
def test_processes_that_begin_at_once_share_what_they_compile(tmp_path):
    running = [begin(ROOT.parent, tmp_path) for _ in range(4)]
    assert [end(process)[0] for process in running] == [RESULT] * 4
    assert end(begin(ROOT.parent, tmp_path)) == (RESULT, True)
    assert [path.suffix for path in tmp_path.rglob("*gain_between*")] == [".nbc"]


@pytest.mark.jit
def test_what_was_compiled_of_other_sources_is_not_used(tmp_path):
    shutil.copytree(ROOT, tmp_path / "vocabfold", ignore=shutil.ignore_patterns("__pycache__"))
    assert end(begin(tmp_path, tmp_path / "cache")) == (RESULT, False)
    assert end(begin(tmp_path, tmp_path / "cache")) == (RESULT, True)
    imported = tmp_path / "vocabfold" / "folding" / "information.py"
    source = imported.read_text("utf-8")
    changed = source.replace("apart / left,", "0.0,").replace("-apart / right,", "0.0,")
    imported.write_text(changed, "utf-8")
    assert end(begin(tmp_path, tmp_path / "cache")) == (0.0, False)


def test_sources_are_those_of_all_modules_with_kernels_and_of_their_compiler():
    found = list(kernels._sources(ROOT))
    holding = [path for path in sorted(ROOT.rglob("*.py")) if _kernels_of(_tree(path)) or path == COMPILER]
    assert sorted(found) == sorted(path.read_bytes() for path in holding)
    assert len(found) > 5


def test_sources_may_be_in_an_archive(tmp_path):
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as packed:
        for path in ROOT.rglob("*.py"):
            packed.write(path, Path("vocabfold", path.relative_to(ROOT)))
    archive = zipfile.Path(tmp_path / "packed.zip", "vocabfold/")
    assert list(kernels._sources(archive)) == list(kernels._sources(ROOT))


def test_kernels_use_nothing_of_modules_without_kernels():
    """What is compiled into a kernel must be in the sources that name the folder."""
    holding = {path: tree for path in ROOT.rglob("*.py") if _kernels_of(tree := _tree(path))}
    names = {".".join(("vocabfold", *path.relative_to(ROOT).with_suffix("").parts)) for path in holding}
    for tree in holding.values():
        foreign = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            and node.module.startswith("vocabfold")
            and node.module not in names
            for alias in node.names
        }
        for function in _kernels_of(tree):
            used = {node.id for part in function.body for node in ast.walk(part) if isinstance(node, ast.Name)}
            assert used.isdisjoint(foreign), function.name


def _tree(path):
    return ast.parse(path.read_text("utf-8"))


def _kernels_of(tree):
    """Return the functions of a module that are compiled."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return [f for f in functions if {"kernel", "inlined"} & {getattr(d, "id", "") for d in f.decorator_list}]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "kernels-0123456789abcdef"
    monkeypatch.setattr(kernels, "_find_folder", lambda: folder)
    return folder


def test_what_processes_compile_at_once_for_other_arguments_is_kept_apart(folder):
    first, second = (kernels._Kept(folder, "module.loop") for _ in range(2))
    for kept, key in ((first, "integers"), (second, "reals")):
        assert kept.load(key) is None
        kept.save(key, f"for {key}")
    assert [first.load(key) for key in ("integers", "reals")] == ["for integers", "for reals"]
    assert len(list(folder.iterdir())) == 2
    assert kernels._Kept(folder, "other.loop").load("integers") is None


@pytest.mark.parametrize("content", [b"", b"\0" * 100, pickle.dumps("for integers")[:-3]])
def test_what_was_not_wholly_written_is_compiled_again(folder, content):
    kept = kernels._Kept(folder, "module.loop")
    kept.save("integers", "for integers")
    (file,) = folder.iterdir()
    file.write_bytes(content)
    assert kept.load("integers") is None
    kept.save("integers", "for integers")
    assert kept.load("integers") == "for integers"


def test_what_cannot_be_written_is_not_kept(folder, monkeypatch):
    def write_bytes(path, _, write=Path.write_bytes):
        write(path, b"a part")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", write_bytes)
    kernels._Kept(folder, "module.loop").save("integers", "for integers")
    assert list(folder.iterdir()) == []


def test_what_may_be_of_sources_that_changed_meanwhile_is_not_kept(folder, monkeypatch):
    monkeypatch.setattr(kernels, "_find_folder", lambda: folder.with_name("kernels-fedcba9876543210"))
    kernels._Kept(folder, "module.loop").save("integers", "for integers")
    assert not folder.exists()


def test_folders_of_old_sources_go(folder):
    strange = [folder.with_name(name) for name in ("kernels-mine", "kernels-0123456789abcde", "other")]
    old = [folder.with_name(f"kernels-{number:016x}") for number in range(10)]
    for age, path in enumerate(strange + old):
        path.mkdir()
        os.utime(path, (10**9 - age, 10**9 - age))
    kernels._Kept(folder, "module.loop").save("integers", "for integers")
    assert set(folder.parent.iterdir()) == {folder, *strange, *old[: kernels._MOST_FOLDERS - 1]}


@pytest.mark.parametrize("decorate", [kernels.kernel, kernels.inlined])
def test_without_a_place_for_the_cache_loops_are_compiled_all_the_same(monkeypatch, decorate):
    def njit(cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(kernels, "njit", njit)
    assert decorate(abs)(-3) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_process_that_is_forked_while_another_thread_compiles_can_compile():
    begun = threading.Event()

    def compile_slowly():
        with global_compiler_lock:
            begun.set()
            time.sleep(0.3)

    other = threading.Thread(target=compile_slowly)
    other.start()
    assert begun.wait(10)
    child = os.fork()
    if not child:
        signal.alarm(10)  # or it would wait for a thread that it does not have
        with global_compiler_lock:
            os._exit(0)
    other.join()
    assert os.waitpid(child, 0)[1] == 0
