"""Saved folders: what is damaged, changed, newer or not ours is refused, and nothing else is touched."""

import errno
import hashlib
import os
import pickle
import random
import re
import shutil
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vocabfold as vf
from support.builders import FEATURES, arrow, fold_counts, sample
from support.saved import edited, header_of, load
from vocabfold.io.folders import headers, parquet_guard, parquet_writer, saving


def test_signing_in_the_tests_is_signing_in_the_code(folder):
    edited(folder, lambda header: None)
    load(folder)


def test_how_an_engine_cuts_its_batches_does_not_show_in_the_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_writer, "_SAMPLE", 5)
    monkeypatch.setattr(parquet_writer, "_ROW_GROUP", 10)
    table = vf.count(arrow(sample(400)), "click", ["site"], folds=9)["site"]
    entries = []
    for size in (1, 3, 7, 10, 25, 1000):
        writer = parquet_writer.Saver(tmp_path)
        entries.append(writer.add(table.schema, table.combine_chunks().to_batches(max_chunksize=size)))
    assert entries == [entries[0]] * 6
    assert pq.ParquetFile(tmp_path / entries[0]["name"]).metadata.row_group(1).num_rows == 10
    assert pq.read_table(tmp_path / entries[0]["name"]).equals(table)


def test_every_damaged_byte_is_found(folder):
    generator = random.Random(3)
    files = sorted(folder.iterdir())
    for _ in range(150):
        path = generator.choice(files)
        content = path.read_bytes()
        place = generator.randrange(len(content))
        path.write_bytes(
            content[:place] + bytes([content[place] ^ 1 << generator.randrange(8)]) + content[place + 1 :]
        )
        with pytest.raises(vf.CodebookError):
            load(folder)
        path.write_bytes(content[:place])
        with pytest.raises(vf.CodebookError):
            load(folder)
        path.write_bytes(content)
    load(folder)


def test_files_that_are_missing_or_swapped_are_found(folder):
    one, two = sorted(folder.glob("*.parquet"))[:2]
    content = one.read_bytes()
    one.unlink()
    with pytest.raises(
        vf.CodebookError, match=r"\.parquet is missing; restore the folder from a copy, or create it"
    ):
        load(folder)
    one.symlink_to(two)
    with pytest.raises(
        vf.CodebookError, match=r"\.parquet is a link, a folder or a device, but only plain files"
    ):
        load(folder)
    one.unlink()
    one.write_bytes(two.read_bytes())
    with pytest.raises(
        vf.CodebookError,
        match=r"bytes instead of .*: it is damaged; restore|its sha256 does not match; restore",
    ):
        load(folder)
    one.write_bytes(content)
    (folder / "provenance.json").write_text("[" * 100_000)
    with pytest.raises(
        vf.CodebookError, match=r"provenance\.json is damaged or was changed by hand: its sha256"
    ):
        load(folder)
    (folder / "provenance.json").write_text(" " * 2**24)
    with pytest.raises(
        vf.CodebookError, match=r"provenance\.json is larger than 8,388,608 bytes, so it is not"
    ):
        load(folder)
    (folder / "provenance.json").write_bytes(headers.checksummed({"header": [], "sources": {}}))
    assert load(folder).sources == ()
    (folder / "provenance.json").unlink()
    assert load(folder).sources == ()


def test_what_is_no_codebook_is_refused(tmp_path, folder):
    noun = "table of counts" if folder.name == "counts" else "codebook"
    empty = tmp_path / "empty" / folder.name
    with pytest.raises(vf.CodebookError, match=r"^there is no folder '.*empty.*'\.$"):
        load(empty)
    empty.mkdir(parents=True)
    with pytest.raises(vf.CodebookError, match=rf"holds no {noun}: there is no \w+\.json in it\.$"):
        load(empty)
    with pytest.raises(vf.InputError, match=r"^expected the path of a folder, got None\.$"):
        vf.load(None)
    for text in ("", "{}", "[]", "null", "[" * 100_000, '{"format": "vocabfold recipe"}', "\0"):
        header_of(folder).write_text(text)
        with pytest.raises(vf.CodebookError, match=rf"json is damaged, or not the header of a {noun}\.$"):
            load(folder)


def test_folders_of_the_other_kind_and_headers_are_named(folder):
    other = vf.load if folder.name == "counts" else vf.load_counts
    remedy = r"load_counts" if folder.name == "counts" else "load"
    with pytest.raises(vf.CodebookError, match=rf"holds a .*; load it with vf\.{remedy}\.$"):
        other(folder)
    load_it = vf.load_counts if folder.name == "counts" else vf.load
    with pytest.raises(vf.CodebookError, match=r"json is the header; give its folder, '.*'\.$"):
        load_it(header_of(folder))


def test_a_newer_format_is_refused(folder):
    edited(folder, lambda header: header.update(version=3))
    with pytest.raises(
        vf.CodebookError, match=r"has format version 3; this release reads up to 2: upgrade vocabfold"
    ):
        load(folder)


def test_a_header_that_was_edited_by_hand_is_refused(folder):
    text = header_of(folder).read_text()
    header_of(folder).write_text(re.sub('"pos": [0-9]+', '"pos": 1', text, count=1))
    with pytest.raises(
        vf.CodebookError, match=r"is damaged or was changed by hand: its sha256 does not match; restore"
    ):
        load(folder)


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "000-0000.parquet/..", "", 3, None])
def test_a_header_cannot_lead_out_of_its_folder(folder, name):
    edited(folder, lambda header: header["columns"][0]["files"][0].update(name=name))
    with pytest.raises(vf.CodebookError, match=r"is not valid: its list of files cannot be read\.$"):
        load(folder)


def _set(**fields):
    return lambda header: header.update(fields)


def _column(**fields):
    return lambda header: header["columns"][0].update(fields)


def _setting(**fields):
    return lambda header: header["settings"].update(fields)


ABSURD = {
    "counts": [
        _set(neg=-1),
        _set(neg=0, pos=0),
        _set(pos=2**70),
        _set(units_per_row=3),
        _set(folds="x"),
        _set(fold_seed=-1),
        _set(fold_column=3),
        _set(label=3),
        _set(columns=[]),
        _column(type="x"),
        _column(name=3),
        _column(name="number"),
        lambda header: header.pop("label"),
    ],
    "book": [
        _set(neg=0),
        _set(pos=1.5),
        _set(units_per_row=0),
        _set(digest="0" * 64),
        _set(columns=[]),
        _column(kind="x"),
        _column(kind="integer"),
        _column(name="number"),
        _column(size=0),
        _column(size=2**40),
        _column(size=True),
        _column(other=-1),
        _column(other=99),
        _column(n_values=3),
        _column(n_rare=-1),
        _column(borders=[0.5, 0.1]),
        _column(borders=[0.1] * 99),
        _column(borders=["x"]),
        _column(information=float("1e999")),
        _column(rows_sha256=3),
        _column(files=[]),
        _setting(unseen="x"),
        _setting(budget="x"),
        _setting(smoothing="x"),
        _setting(dedicated_from="x"),
        _column(n_dedicated=99),
        _column(n_dedicated=-1),
        _column(shared=[0, 0]),
        _column(shared=[-1]),
        _column(shared=[2**40]),
        _column(shared=list(range(99))),
        _column(shared=["x"]),
        _column(rates=[0.5]),
        _column(rates=["x"]),
        _column(mean=1.5),
        _column(strength=-1.0),
        _column(strength="x"),
        _column(gain="x"),
        _column(training_rows=[30.0]),
        _column(training_rows=["x"]),
        lambda header: header["columns"][0].update(training_rows=[-1] * header["columns"][0]["size"]),
        _column(is_other_trained=1),
        _set(bound="x"),
        lambda header: header["columns"][0].update(rates=[2.0] * header["columns"][0]["size"]),
        lambda header: header["columns"][0].update(mean=header["columns"][0]["mean"] / 2),
        lambda header: header.pop("gap"),
        lambda header: header["columns"][0].pop("loss"),
    ],
}


@pytest.mark.parametrize(
    ("name", "change"), [(name, change) for name, changes in ABSURD.items() for change in changes]
)
def test_a_header_with_absurd_fields_is_refused(original, tmp_path, name, change):
    folder = shutil.copytree(original / name, tmp_path / name)
    edited(folder, change)
    with pytest.raises(vf.CodebookError, match=r"is not valid: |is damaged"):
        load(folder)


def _replace(folder, table, **options):
    """Put another table in the place of the first column's, and sign for it."""

    def change(header):
        entry = header["columns"][0]["files"][0]
        pq.write_table(table, folder / entry["name"], **options)
        content = (folder / entry["name"]).read_bytes()
        entry.update(bytes=len(content), sha256=hashlib.sha256(content).hexdigest(), rows=table.num_rows)

    edited(folder, change)


def test_files_with_other_columns_are_refused(original, tmp_path):
    folder = shutil.copytree(original / "book", tmp_path / "book")
    table = vf.load(folder)["site"]
    _replace(folder, table.rename_columns(["v", "id", "neg", "pos"]))
    with pytest.raises(vf.CodebookError, match=r"it must hold \d+ rows of value, id, neg, pos\.$"):
        vf.load(folder)
    _replace(folder, table.set_column(1, "id", [[99] * table.num_rows]).cast(table.schema))
    with pytest.raises(
        vf.CodebookError, match=r"its values must be in ascending order, its ids below \d+, and its counts"
    ):
        vf.load(folder).ids("site", ["a"])
    _replace(folder, table.take(pa.array(range(table.num_rows))[::-1]))
    with pytest.raises(vf.CodebookError, match=r"its values must be in ascending order"):
        vf.load(folder).ids("site", ["a"])


def test_ids_and_counts_that_cannot_be_are_refused_before_they_are_used(original, tmp_path):
    for change in ({"id": 99}, {"id": -1}, {"neg": -1}, {"pos": 2**62}):
        folder = shutil.copytree(original / "book", tmp_path / "book")
        table = vf.load(folder)["site"]
        for name, number in change.items():
            column = pa.array([number] * table.num_rows, table.schema.field(name).type)
            table = table.set_column(table.schema.get_field_index(name), name, column)
        _replace(folder, table)
        for use in (lambda book: book["site"], lambda book: book.groups("site"), lambda book: book.verify()):
            with pytest.raises(vf.CodebookError, match=r"its ids below \d+, and its counts must add up"):
                use(vf.load(folder))
        shutil.rmtree(folder)


def _changed(table, name, changes):
    """Return a table with other values in some rows of a column."""
    values = table[name].to_pylist()
    for row, value in changes.items():
        values[row] = value
    column = table.schema.field(name).with_nullable(True)
    return table.set_column(table.schema.get_field_index(name), column, [pa.array(values, column.type)])


def test_nothing_but_a_value_may_be_missing_and_none_comes_twice(original, tmp_path):
    for use in (
        lambda book: book["site"],
        lambda book: book.members("site", 0),
        lambda book: book.evaluate(arrow(sample()), label="click"),
        lambda book: book.save(tmp_path / "copy"),
    ):
        folder = shutil.copytree(original / "book", tmp_path / "book")
        table = vf.load(folder)["site"]
        twice = _changed(table, "value", {2: table["value"][1].as_py()})
        late = _changed(table, "value", {table.num_rows - 1: None})
        neg = table["neg"].to_pylist()
        sums_kept = _changed(table, "neg", {1: None, 2: neg[1] + neg[2]})
        for wrong in (twice, late, sums_kept, _changed(table, "id", {1: None})):
            _replace(folder, wrong)
            with pytest.raises(vf.CodebookError, match="its values must be in ascending order"):
                use(vf.load(folder))
        shutil.rmtree(folder)


def test_files_that_are_damaged_after_they_were_loaded_are_found_by_verify(original, tmp_path):
    folder = shutil.copytree(original / "book", tmp_path / "book")
    book = vf.load(folder)
    book.verify()
    for path in folder.glob("*.parquet"):
        content = path.read_bytes()
        for place in range(4, len(content) - 12, len(content) // 9):
            path.write_bytes(content[:place] + bytes(8) + content[place + 8 :])
            with suppress(vf.CodebookError):  # unless it does not matter
                book.verify()
        path.write_bytes(content[: len(content) // 2])
        with pytest.raises(vf.CodebookError, match=rf"{path.name} is not valid: "):
            book.verify()
        path.write_bytes(content)
    book.verify()


def test_places_where_no_folder_can_be_made_are_refused(counts):
    with pytest.raises(vf.InputError, match=r"^/proc/vocabfold cannot be written: "):
        counts.save("/proc/vocabfold")


def test_notes_that_nobody_would_read_are_not_saved(counts, tmp_path, monkeypatch):
    counts.save(tmp_path / "counts")
    monkeypatch.setattr(saving, "MAX_PROVENANCE", 2**10)
    replace(counts, sources=("x" * 2**10,)).save(tmp_path / "counts")
    monkeypatch.undo()
    assert vf.load_counts(tmp_path / "counts").sources == ()  # and not those of the counts before


def test_folds_of_counts_are_not_missing(tmp_path):
    counts = vf.count(arrow(sample()), "click", ["site"], folds=3)
    counts.save(tmp_path / "counts")
    _replace(tmp_path / "counts", _changed(counts["site"], "fold", {0: None}))
    with pytest.raises(vf.CodebookError, match=r"its counts do not add up to those of the header\.$"):
        vf.fit(vf.load_counts(tmp_path / "counts"), 5)


def test_counts_of_strangers_are_pickled_within_bounds(original, tmp_path):
    folder = shutil.copytree(original / "counts", tmp_path / "counts")
    counts = vf.load_counts(folder)
    assert pickle.loads(pickle.dumps(counts))["site"].equals(counts["site"])
    values = [f"{'x' * 10**6}{i:06}" for i in range(300)]
    numbers = [[counts.neg, *[0] * 299], [counts.pos, *[0] * 299]]
    bomb = pa.table([values, *numbers], schema=counts["site"].schema)
    _replace(folder, bomb, use_dictionary=False, column_encoding={"value": "DELTA_BYTE_ARRAY"})
    with pytest.raises(vf.CodebookError, match=r"would unpack to more than"):
        pickle.dumps(vf.load_counts(folder))


def test_a_column_without_a_name_is_saved_and_loaded(tmp_path):
    (tmp_path / "rows.csv").write_text(",b,click\nu,v,1\nw,v,0\n")
    counts = vf.count(tmp_path / "rows.csv", "click", ["", "b"])
    counts.save(tmp_path / "counts")
    assert vf.load_counts(tmp_path / "counts").features == ("", "b")


@pytest.mark.parametrize(("field", "changes"), [("dedicated_from", {"dedicated_from": 10**400}), ("gain", {})])
def test_figures_that_cannot_be_are_refused(tmp_path, field, changes):
    book = vf.fit(vf.count(arrow(sample()), "click", FEATURES, folds=3), 12)
    book.save(tmp_path / "book")

    def change(header):
        header["settings"].update(changes)
        if field == "gain":
            header["columns"][0]["gain"] = None

    edited(tmp_path / "book", change)
    with pytest.raises(vf.CodebookError, match=rf"the field '{field}' is missing or absurd\.$"):
        vf.load(tmp_path / "book")


def test_folders_are_saved_where_there_are_no_locks(folder, counts, tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", flock)
    loaded = load(folder)
    loaded.save(tmp_path / "new")
    loaded.save(tmp_path / "new")
    assert (tmp_path / "new" / header_of(folder).name).read_bytes() == header_of(folder).read_bytes()


def test_counts_that_do_not_add_up_are_refused_before_they_are_used(original, tmp_path):
    folder = shutil.copytree(original / "counts", tmp_path / "counts")
    edited(folder, lambda header: header.update(neg=header["neg"] + 1, neg_rows=header["neg_rows"] + 1))
    for use in (lambda counts: counts["site"], lambda counts: vf.fit(counts, 12)):
        with pytest.raises(vf.CodebookError, match=r"its counts do not add up to those of the header\.$"):
            use(vf.load_counts(folder))
    edited(folder, lambda header: header.update(folds=1001))
    with pytest.raises(vf.CodebookError, match=r"a field is missing or absurd\.$"):
        vf.load_counts(folder)


def test_files_in_which_nothing_may_be_missing_are_as_good(original, tmp_path):
    folder = shutil.copytree(original / "book", tmp_path / "book")
    book = vf.load(folder)
    table, ids = book["site"], book.ids("site", ["a", None])
    fields = [field.with_nullable(field.name == "value") for field in table.schema]
    _replace(folder, table.cast(pa.schema(fields)))
    assert (vf.load(folder).ids("site", ["a", None]) == ids).all()


def test_a_file_cannot_be_listed_twice(folder):
    edited(folder, lambda header: header["columns"][0].update(files=2 * header["columns"][0]["files"]))
    with pytest.raises(vf.CodebookError, match=r"its list of files cannot be read\.$"):
        load(folder)


def test_texts_that_no_file_can_hold_are_refused(folder):
    edited(folder, lambda header: header.update(label="\ud800"))
    with pytest.raises(vf.CodebookError, match=r"is not valid: it is not JSON\.$"):
        load(folder)
    edited(folder, lambda header: header.update(label="\\ud800"))  # a backslash is a character
    assert load(folder).label == "\\ud800"


def test_values_that_compress_too_well_are_saved_and_read(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_guard, "_ROOM", 2**20)
    values = [f"{'x' * 3000}{i:06}" for i in range(3000)]
    counts = vf.count(pa.table({"x": values, "y": [0, 1] * 1500}), "y")
    fold_counts(counts, 2).save(tmp_path / "book")
    book = vf.load(tmp_path / "book")
    assert (book.ids("x", values[:3]) == [0, 1, 0]).all()
    assert book["x"].num_rows == 3000


def test_a_codebook_cannot_claim_the_digest_of_another(original, tmp_path):
    folder = shutil.copytree(original / "book", tmp_path / "book")
    book = vf.load(folder)
    book.verify()
    table = book["site"]
    ids = pa.array((table["id"].to_numpy() + 1) % book.sizes["site"], pa.int32())
    _replace(folder, table.set_column(1, "id", ids))
    with pytest.raises(vf.CodebookError, match=r"^the values of column 'site' do not match the digest"):
        book.verify()  # it was verified before, and the files have changed
    other = vf.load(folder)
    assert other.digest == book.digest
    rows = arrow(sample())
    for check in (other.verify, lambda: other.transform(rows, expect=book.digest)):
        with pytest.raises(vf.CodebookError, match=r"^the values of column 'site' do not match the digest"):
            check()


@pytest.mark.parametrize("name", ["header", "provenance.json"])
def test_no_link_is_followed_and_no_pipe_is_read(folder, name):
    path = header_of(folder) if name == "header" else folder / name
    path.rename(folder.parent / "elsewhere")
    for make in (lambda: path.symlink_to(folder.parent / "elsewhere"), lambda: os.mkfifo(path), path.mkdir):
        make()
        with pytest.raises(
            vf.CodebookError, match=r"json is a link, a folder or a device, but only plain files are"
        ):
            load(folder)
        path.rmdir() if path.is_dir() else path.unlink()
