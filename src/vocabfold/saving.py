"""Codebook -> folder, and -> digest: both go once over the values of every column."""

from __future__ import annotations

import os

from vocabfold import headers, storage
from vocabfold.cluster.store import ClusterStore
from vocabfold.codebook import Codebook
from vocabfold.columns import digest_of, facts_of, hash_of_rows, schema_of, sorted_by_value
from vocabfold.engines.duckdb import Engine
from vocabfold.errors import CodebookError
from vocabfold.loading import SavedStore
from vocabfold.progress import track


def save(book: Codebook, path: str | os.PathLike[str]) -> None:
    """Write a codebook to a folder, as `docs/format.md` says."""

    def fill(saver: storage.Saver) -> headers.Json:
        if isinstance(book.store, ClusterStore):
            files = book.store.write(saver)
        else:
            files = {}
            with Engine(book.memory_limit) as engine:
                for name in track(book.features, "saving", engine.progress):
                    batches = engine.stream(sorted_by_value(book.store.sql(engine, name)))
                    files[name] = [saver.add(schema_of(book.columns[name].kind), batches)]
                    _row_hash(book, engine, name)
        of_content = digest(book)
        columns = [
            {"name": name} | facts_of(column) | {"rows_sha256": book.hashes[name], "files": files[name]}
            for name, column in book.columns.items()
        ]
        return {
            "digest": of_content,
            "label": book.label,
            "positive": book.positive,
            "units_per_row": book.units_per_row,
            "neg": book.neg,
            "pos": book.pos,
            "gap": book.gap,
            "bound": book.bound,
            "settings": dict(book.settings),
            "columns": columns,
        }

    storage.save(path, headers.CODEBOOK, fill, storage.Origin(book.sources, book.fingerprints))


def digest(book: Codebook) -> str:
    """Return the sha256 of what a codebook holds; of one that was loaded, the hashes are known."""
    if len(book.hashes) == len(book.columns):
        pass
    elif isinstance(book.store, ClusterStore):
        for _ in track([""], "digesting"):
            book.hashes.update(book.store.hashes())
    else:
        with Engine(book.memory_limit) as engine:
            for name in track(book.features, "digesting", engine.progress):
                _row_hash(book, engine, name)
    head = f"vocabfold 1 {book.units_per_row} {book.settings['unseen']}"
    return digest_of(head, book.columns, book.hashes)


def verify(book: Codebook) -> None:
    """Refuse a codebook whose values are not those that its digest stands for."""
    if isinstance(book.store, ClusterStore):
        return  # the digest comes from the values
    with Engine(book.memory_limit) as engine:
        for name in track(book.features, "verifying", engine.progress):
            if isinstance(book.store, SavedStore):
                book.store.forget(name)
            found = hash_of_rows(engine, book.columns[name].kind, book.store.sql(engine, name))
            if found != book.hashes.setdefault(name, found):
                raise CodebookError(
                    f"the values of column {name!r} are not those that the digest of the codebook stands for; "
                    "take the codebook from whoever made it."
                )


def _row_hash(book: Codebook, engine: Engine, name: str) -> str:
    """Return the sum of the hashes of the values of a column, computed once."""
    if name not in book.hashes:
        book.hashes[name] = hash_of_rows(engine, book.columns[name].kind, book.store.sql(engine, name))
    return book.hashes[name]
