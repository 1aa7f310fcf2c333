"""Temporary folders go with their process, however it ends; those of others stay."""

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from vocabfold.errors import InputError
from vocabfold.io.folders import locks, temporary
from vocabfold.io.folders.temporary import TemporaryFolder

CODE = """
import sys
from vocabfold.io.folders.temporary import TemporaryFolder
folder = TemporaryFolder()
(folder.path / "spill").mkdir()
(folder.path / "spill" / "file").write_text("x")
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    temporary._sweep.cache_clear()
    return tmp_path


def test_what_a_killed_process_left_goes_and_all_else_stays(place):
    other_machine = Path(tempfile.mkdtemp(prefix="vocabfold-another.host-"))
    link = place / f"{temporary._PREFIX}abcdefgh"
    link.symlink_to(other_machine)
    file = place / f"{temporary._PREFIX}abcdefgi"
    file.write_text("no folder")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen([sys.executable, "-c", CODE], **pipes) for _ in range(2)]
    killed, alive = (Path(process.stdout.readline().rstrip()) for process in processes)
    processes[0].kill()
    processes[0].communicate()
    with TemporaryFolder() as mine:
        assert set(place.iterdir()) == {other_machine, link, file, alive, mine}
        assert killed not in place.iterdir()
        assert (alive / "spill" / "file").exists()
    processes[1].communicate("end")
    assert set(place.iterdir()) == {other_machine, link, file}


def test_a_folder_that_is_swept_before_it_is_locked_is_made_anew(monkeypatch):
    locked = []

    def lock(path, lock=temporary._hold):
        locked.append(path)
        if len(locked) == 1:
            path.rmdir()
        elif len(locked) == 2:
            raise BlockingIOError
        return lock(path)

    monkeypatch.setattr(temporary, "_hold", lock)
    with TemporaryFolder() as folder:
        assert folder == locked[2]
        assert folder.is_dir()


def test_a_forked_process_does_not_remove_the_folder(place):
    folder = TemporaryFolder()
    child = os.fork()
    if not child:
        folder.remove()
        os._exit(0)
    os.waitpid(child, 0)
    assert list(place.iterdir()) == [folder.path]
    del folder
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("broken", ["no locks", "no fcntl"])
def test_folders_are_made_where_there_are_no_locks(place, monkeypatch, broken):
    def flock(*_):
        raise OSError(errno.ENOTSUP, "not supported")

    if broken == "no locks":
        monkeypatch.setattr("fcntl.flock", flock)
    else:
        monkeypatch.setattr(locks, "fcntl", None)
    left = Path(tempfile.mkdtemp(prefix=temporary._PREFIX))
    with TemporaryFolder() as folder:
        assert set(place.iterdir()) == {left, folder}
        # And nobody takes it for one that is left.
        assert not temporary._NAME.fullmatch(folder.name)


def test_a_folder_that_cannot_be_locked_is_not_used(place, monkeypatch):
    def flock(*_):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("fcntl.flock", flock)
    with pytest.raises(InputError, match="temporary files cannot be written: Too many open files"):
        TemporaryFolder()
    assert list(place.iterdir()) == []


def test_no_place_for_temporary_files_is_an_error(place, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(place / "absent"))
    with pytest.raises(
        InputError, match=r"^temporary files cannot be written: No such .*; set TMPDIR to a folder"
    ):
        TemporaryFolder()
