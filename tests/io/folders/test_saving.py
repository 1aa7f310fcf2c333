"""Folders appear whole or not at all, whoever writes, reads, fails or is killed meanwhile."""

import atexit
import errno
import os
import re
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import vocabfold as vf
from support.builders import FEATURES, arrow, fold_counts, sample
from support.saved import header_of, load
from vocabfold.io.folders import headers, loading, saving
from vocabfold.io.folders.temporary import TemporaryFolder


def test_a_header_that_nobody_could_load_is_not_saved(folder, counts, monkeypatch):
    monkeypatch.setattr(headers, "MAX_BYTES", 100)
    with pytest.raises(
        vf.InputError, match=r"would have [\d,]+ bytes, but at most 100 are allowed; use fewer ids"
    ):
        counts.save(folder.parent / "new")
    assert not (folder.parent / "new").exists()


def test_a_folder_with_anything_else_in_it_is_left_alone(folder, counts):
    save = counts.save if folder.name == "counts" else fold_counts(counts, 12).save
    (folder / "thesis.doc").write_text("ten years of work")
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(
        vf.InputError, match=r"holds 'thesis\.doc', so it is not replaced; give a new or empty folder"
    ):
        save(folder)
    assert sorted(path.name for path in folder.iterdir()) == before
    other = fold_counts(counts, 12).save if folder.name == "counts" else counts.save
    (folder / "thesis.doc").unlink()
    with pytest.raises(vf.InputError, match=r"so it is not replaced"):
        other(folder)
    with pytest.raises(vf.InputError, match=r"is a file; give a folder\.$"):
        save(header_of(folder))
    load(folder)


def test_of_two_writers_one_wins_and_the_other_is_told(folder, counts):
    small = vf.count(arrow(sample(20)), "click", FEATURES)
    makers = [counts, small] if folder.name == "counts" else [fold_counts(counts, 12), fold_counts(small, 6)]
    told = []

    def save(maker):
        for _ in range(6):
            try:
                maker.save(folder)
            except vf.InputError as error:
                told.append(str(error))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(save, makers * 2))
    assert load(folder).rows in (20, 60)
    assert told
    assert all(
        re.search(r"is being saved by another process; wait until it has finished, or save elsewhere\.$", m)
        for m in told
    )


def test_a_reader_finds_the_old_or_the_new_while_someone_saves(folder, counts):
    small = vf.count(arrow(sample(20)), "click", FEATURES)
    makers = [counts, small] if folder.name == "counts" else [fold_counts(counts, 12), fold_counts(small, 6)]
    found = set()
    with ThreadPoolExecutor(1) as pool:
        saving = pool.submit(lambda: [maker.save(folder) for maker in makers * 8])
        while not saving.done():
            found.add(load(folder).rows)
        saving.result()
    assert found <= {20, 60}


def test_what_is_replaced_by_its_like_while_it_is_read_is_read_again(folder, monkeypatch):
    """Its old files are gone, and the header that says so is the same, byte by byte."""
    is_first = iter([True])
    look = loading._check_file

    def replaced(*arguments):
        if next(is_first, False):
            content = header_of(folder).read_bytes()
            (folder / "new.json").write_bytes(content)
            (folder / "new.json").replace(header_of(folder))
            raise vf.CodebookError("a file is missing.")
        look(*arguments)

    monkeypatch.setattr(loading, "_check_file", replaced)
    assert load(folder).rows


def test_whoever_is_told_to_wait_leaves_a_new_folder_to_the_other(tmp_path, counts, monkeypatch):
    """The folder is new to both, and still empty when the second one gives up."""
    place, fill = tmp_path / "new", saving.check_replaceable

    def slowly(*arguments):
        with monkeypatch.context() as patch:
            patch.setattr(saving.Path, "exists", lambda path: path != place)  # as it was for the second one
            with pytest.raises(vf.InputError, match="is being saved by another process"):
                counts.save(place)
        fill(*arguments)

    monkeypatch.setattr(saving, "check_replaceable", slowly)
    counts.save(place)
    assert vf.load_counts(place).rows == counts.rows


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_process_that_was_forked_keeps_neither_the_lock_nor_temporary_folders(tmp_path, counts, monkeypatch):
    (asked, answer), fill, children = os.pipe(), saving.check_replaceable, []

    def forking(*arguments):
        with TemporaryFolder() as folder:
            ended = os.fork()
            if not ended:
                atexit._run_exitfuncs()  # as at the end of any process
                os._exit(not folder.exists())
            assert os.waitpid(ended, 0)[1] == 0
            children.append(os.fork())
            if not children[0]:
                os.close(answer)
                os.read(asked, 1)  # until the parent closes it
                os._exit(0)
        fill(*arguments)

    monkeypatch.setattr(saving, "check_replaceable", forking)
    counts.save(tmp_path / "counts")
    monkeypatch.undo()
    counts.save(tmp_path / "counts")  # the child has the descriptor still
    os.close(answer)
    assert os.waitpid(children[0], 0)[1] == 0
    os.close(asked)


def test_what_a_killed_save_left_is_cleaned_by_the_next(folder, counts):
    save = counts.save if folder.name == "counts" else fold_counts(counts, 12).save
    before = sorted(path.name for path in folder.iterdir())
    (folder / "unfinished-0123456789abcdef").write_text("half")
    (folder / "000-0123456789abcdef.parquet").write_text("old")
    load(folder)
    save(folder)
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES])
@pytest.mark.parametrize("step", [1, 2, 3, 10, 11])
def test_a_save_that_fails_leaves_the_old_one_and_no_litter(folder, counts, monkeypatch, step, code):
    small = vf.count(arrow(sample(20)), "click", FEATURES)
    save = small.save if folder.name == "counts" else fold_counts(small, 6).save
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    sync, calls = os.fsync, []

    def failing(descriptor):
        calls.append(descriptor)
        if len(calls) == step:
            raise OSError(code, os.strerror(code))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", failing)
    message = "^the disk is full; .* is unchanged" if code == errno.ENOSPC else "cannot be written: Permission"
    with pytest.raises(vf.InputError, match=message):
        save(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    load(folder)
    new = folder.parent / "new"
    calls.clear()
    with pytest.raises(vf.InputError, match=message):
        save(new)
    assert not new.exists()


def test_a_save_that_fails_after_the_new_header_is_in_place_leaves_the_new_one(folder, monkeypatch):
    small = vf.count(arrow(sample(20)), "click", FEATURES)
    save = small.save if folder.name == "counts" else fold_counts(small, 6).save
    sync, calls = os.fsync, []

    def failing(descriptor):
        calls.append(descriptor)
        if len(calls) == 2 * len(FEATURES) + 2:  # each file and its folder, then the header and its folder
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(vf.InputError, match="cannot be written: Input/output error"):
        save(folder)
    monkeypatch.undo()
    assert load(folder).rows == 20


def test_a_place_that_cannot_be_written_is_refused(counts, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(vf.InputError, match=r"cannot be written: "):
        counts.save(tmp_path / "file" / "counts")


@pytest.mark.parametrize("path", ["~nobody-of-this-name/x", "x" * 300, "\udce3z"])
def test_paths_that_no_folder_can_have_are_refused(path, counts):
    for call in (counts.save, vf.load_counts, vf.load):
        with pytest.raises(vf.InputError, match=r"cannot be used: |is not UTF-8; rename it first\.$"):
            call(path)


@pytest.mark.parametrize("path", ["s3://bucket/book", "hdfs:///x", "dbfs://y"])
def test_stores_are_refused_at_once(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    counts = vf.count(pa.table({"x": ["a", "b"], "y": [0, 1]}), "y")
    for call in (counts.save, vf.load_counts, vf.load, vf.fit(counts, 2).save):
        with pytest.raises(vf.InputError, match="is not a folder: .* are not supported yet; give a folder"):
            call(path)
    assert not list(tmp_path.iterdir())
    counts.save(f"file://{tmp_path}/counts")
    assert vf.load_counts(tmp_path / "counts").rows == 2
