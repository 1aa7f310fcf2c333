"""Codebook: the id of every value of every column, what the ids keep, and where that comes from.

A codebook that was just fitted is a query: the counts joined with the small table (neg, pos) -> id, since
values with equal counts share an id. Saved, it is a folder (`docs/format.md`). Either way its values stay where
they are until a column is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from vocabfold.codebook.column import BookColumn, Sums
from vocabfold.codebook.digest import digest_of
from vocabfold.codebook.index import Index
from vocabfold.codebook.lookups import Lookups
from vocabfold.codebook.settings import default_of
from vocabfold.codebook.stores import Store
from vocabfold.counts.counts import Counts
from vocabfold.counts.totals import Totals
from vocabfold.folding.printing import html_summary, summaries
from vocabfold.support.checks import number
from vocabfold.support.wording import described

if TYPE_CHECKING:
    from vocabfold.evaluation.comparison import Comparison
    from vocabfold.evaluation.results import Evaluation


@dataclass(frozen=True, eq=False, repr=False)
class Codebook(Totals, Sums, Lookups):
    """The id of every value of every column.

    `book["site"]` is an Arrow table with the columns value, id, neg, pos, sorted by value; missing comes first.
    If rows had weights, neg and pos are sums of weights, and neg_rows and pos_rows are the rows.

    Attributes
    ----------
    columns : dict
        A `BookColumn` for each feature, in the order of the counts.
    sizes : dict
        Ids of each column.
    offsets : dict
        Where each column begins if all ids share one range: offset + id is unique over all columns.
    size, budget : int
        Ids in all, and ids allowed.
    information, total, loss : float
        What the ids keep of what the values tell about the label, and what they do not: sums over the columns,
        in nats per row.
    bound, gap : float or None
        With aim="information": no codebook of at most `budget` ids keeps more than `bound`, in the masses that
        were folded, and `gap` is how much more that is.
    gain : float or None
        The cross-validated gain, if folds were counted: by how much the rates of the ids beat the
        overall rate out of fold, in nats per row and summed over the columns. It may be negative.
    digest : str
        Equal for equal content, whoever wrote it.
    settings : dict
        How it was fitted.
    label, positive : str
        The column of the label, and its positive value as text.
    rows : int or float
        Rows it was fitted on, by weight.
    neg_rows, pos_rows : int or None
        Rows with a negative and with a positive label, each counted once whatever it weighs; None, if it was
        saved in format 1.
    features : tuple of str
        The columns.
    n_values, n_rare, n_dedicated, n_rates : int
        Values and rare values, dedicated ids, and distinct rates: sums over the columns.
    sources, left_out : tuple of str
        What was counted, and its columns that are not text and were not named.
    saved : str or None
        When it was saved, if it was loaded.
    memory_limit : int or None
        Bytes that later steps may use, if it was given.

    Methods
    -------
    transform, ids, row, groups, members
        The ids of rows and of values, and the values of ids.
    evaluate, report, save, verify
        How it does on other rows; a page about it; a folder of it; whether its values are those of its digest.
    """

    columns: Mapping[str, BookColumn]
    gap: float | None
    bound: float | None
    settings: Mapping[str, Any]
    label: str
    positive: str
    store: Store
    sources: tuple[str, ...] = ()
    fingerprints: tuple[tuple[str, ...], ...] = ()  # of the rows it was fitted on
    memory_limit: int | None = None
    saved: str | None = None  # when, if it was loaded
    left_out: tuple[str, ...] = ()  # columns that are not text and were not named
    hashes: dict[str, str] = field(default_factory=dict)  # of the rows of each column, once computed
    indexes: dict[str, Index] = field(default_factory=dict)  # of the columns that are in memory

    @property
    def features(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(self.columns)

    @property
    def sizes(self) -> dict[str, int]:
        """Ids of each column."""
        return {name: column.size for name, column in self.columns.items()}

    @property
    def size(self) -> int:
        """Ids in all."""
        return sum(self.sizes.values())

    @property
    def budget(self) -> int:
        """Ids allowed; with budget="auto", those that are used."""
        return self.size if self.settings["budget"] == "auto" else int(self.settings["budget"])

    @property
    def offsets(self) -> dict[str, int]:
        """Where each column begins if all ids share one range."""
        ends = np.cumsum([0, *self.sizes.values()])
        return {name: int(end) for name, end in zip(self.columns, ends, strict=False)}

    @property
    def digest(self) -> str:
        """A sha256 of the content: equal for equal content, whatever its order, engine or age."""
        if not self.hashes:
            self.hashes.update(self.store.hashes())
        head = f"vocabfold 1 {self.units_per_row} {self.settings['unseen']}"
        return digest_of(head, self.columns, self.hashes)

    def verify(self) -> None:
        """Check that the values are those that the digest stands for.

        `vf.load` finds damage, and takes from the header what each column adds to the digest. A forged header
        could claim the digest of another codebook, so this reads all values once more and computes the digest
        from them. `transform(expect=...)` does so the first time.

        Raises
        ------
        CodebookError
            They are not.
        """
        if self.hashes:  # else the digest was not computed yet, and will come from the values
            self.store.verify(self.hashes)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"indexes": {}}  # a pickle does without: they are made again

    def __dir__(self) -> list[str]:
        return described(self)

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def transform(
        self,
        data: Any,
        *,
        out: str | os.PathLike[str] | None = None,
        offset_ids: bool = False,
        only_ids: bool = False,
        expect: str | None = None,
        counts: Counts | None = None,
        fold_column: str | None = None,
        preset: str | None = None,
        overwrite: bool = True,
        memory_limit: int | str | None = None,
    ) -> Any:
        """Replace the values of the codebook's columns by their ids; rows keep their order.

        Parameters
        ----------
        data : frame, or anything that `count` takes
            Columns are found by their names; there may be others, which stay as they are. A Spark frame is
            joined with the values on its cluster, when its rows are asked for; they have no order.
        out : path, optional
            Where to write the result: a file that ends in .parquet, .csv or .tsv (the last two also with .gz or
            .zst), or, with a / at its end, a folder for one file per input file, of the same name. Without it,
            data must be a frame.
        offset_ids : bool
            Number the ids over all columns, as `offsets` says, for one embedding table.
        only_ids : bool
            Leave all other columns out.
        expect : str, optional
            The digest that the codebook must have: that of the model's training. It is computed from all values
            (see `verify`), the first time.
        counts : Counts, optional
            For the rows that the codebook was fitted on: their counts, by fold. Every row is encoded by the
            rows of the other folds, so that no id leaks the label of its row.
        fold_column : str, optional
            The column with the fold of each row; by default the one of the counts. If rows were assigned to
            folds by their number, the data must be what was counted, file by file.
        preset : {"criteo"}, optional
            As for `count`.
        overwrite : bool
            Replace files that exist, instead of refusing.
        memory_limit : int or str, optional
            As for `count`; by default that of the codebook.

        Returns
        -------
        frame or Transformed
            Without `out`, a frame of the same kind, with int32 ids. Otherwise what was written: its `paths`,
            `rows`, and per column the number of `unseen` rows. The metadata of a Parquet file hold the digest
            of the codebook, under "vocabfold.digest".

        Raises
        ------
        InputError
            A column is missing or of another type, the output cannot be written, or, with unseen="error", a
            value is not in the codebook. No unfinished file is left behind.

        Warns
        -----
        UserWarning
            The rows are those that the codebook was fitted on, and `counts` is not given.

        Examples
        --------
        >>> import pyarrow as pa
        >>> import vocabfold as vf
        >>> rows = pa.table({"site": ["a", "b", "a", "c"], "click": [1, 0, 1, 1]})
        >>> book = vf.fit(vf.count(rows, "click"), budget=2, aim="information")
        >>> book.transform(pa.table({"site": ["b", "c"], "day": [1, 2]})).to_pydict()
        {'site': [0, 1], 'day': [1, 2]}
        """
        from vocabfold.encoding.transform import transform

        return transform(
            self,
            data,
            out,
            offset_ids=offset_ids,
            only_ids=only_ids,
            expect=expect,
            counts=counts,
            fold_column=fold_column,
            preset=preset,
            overwrite=overwrite,
            memory_limit=memory_limit,
        )

    def evaluate(
        self,
        data: Any,
        label: str | None = None,
        *,
        positive: Any = None,
        weight: str | None = None,
        drop_null_labels: bool = False,
        preset: str | None = None,
        memory_limit: int | str | None = None,
    ) -> Evaluation:
        """Evaluate the codebook on held-out rows.

        Parameters
        ----------
        data, weight, drop_null_labels, preset, memory_limit
            As for `count`.
        label, positive : optional
            As for `count`; by default those of the codebook.

        Returns
        -------
        Evaluation
            Per column and in all: what the ids tell about these rows, how many of them have values that are
            not in the codebook, whether the rates of the ids generalise, and warnings in words.

        Raises
        ------
        InputError
            The rows or the options cannot be used.
        """
        from vocabfold.evaluation.held_out import evaluate

        return evaluate(
            self,
            data,
            label,
            positive=positive,
            weight=weight,
            drop_null_labels=drop_null_labels,
            preset=preset,
            memory_limit=memory_limit,
        )

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        counts: Counts | None = None,
        heldout: Any = None,
        label: str | None = None,
        positive: Any = None,
        weight: str | None = None,
        drop_null_labels: bool = False,
        preset: str | None = None,
        compare: Comparison | str | os.PathLike[str] | None = None,
        steps: int | None = None,
        pictures: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        memory_limit: int | str | None = None,
    ) -> dict[str, Any]:
        """Write one HTML file that shows what the codebook holds, what other budgets give, and what to trust.

        Parameters
        ----------
        path : path
            Where to write it: a file that ends in .html. It needs no network and no server.
        counts : Counts, optional
            Those that the codebook was fitted on: other budgets are tried on them, with the same settings.
        heldout : frame, or anything that `count` takes, optional
            Held-out rows, to evaluate the codebook and the other budgets on.
        label, positive, weight, drop_null_labels, preset, memory_limit
            Of the held-out rows, as for `evaluate`.
        compare : Comparison or path, optional
            What `vf.compare` found, or a file with what `vocabfold compare --json` printed.
        steps : int, optional
            Budgets to try, 3 to 200; by default as many as are useful (16 for a factor of two, and 200 in
            all), or 25 with methods that are slow.
        pictures : path, optional
            A folder for the plots, as SVG and PNG.
        overwrite : bool
            Replace files that exist, instead of refusing.

        Returns
        -------
        dict
            The figures that the page shows, information in nats per row.

        Raises
        ------
        InputError
            The counts are not those of the codebook, rows or options cannot be used, or nothing can be written.
        MissingDependency
            jinja2 or vl-convert-python is not installed: pip install jinja2 vl-convert-python.
        """
        from vocabfold.report.write import write_report

        return write_report(
            self,
            path,
            counts=counts,
            heldout=heldout,
            label=label,
            positive=positive,
            weight=weight,
            drop_null_labels=drop_null_labels,
            preset=preset,
            compare=compare,
            steps=steps,
            pictures_to=pictures,
            overwrite=overwrite,
            memory_limit=memory_limit,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the codebook to a folder, replacing a codebook that is there; `vf.load` reads it back.

        Whatever happens meanwhile, the folder holds the old codebook or the new one.
        """
        from vocabfold.codebook.saved import save

        save(self, path)

    def __repr__(self) -> str:
        return "\n  ".join([summaries("Codebook", self.columns, self), *grouped(self)])

    def _repr_html_(self) -> str:
        return "".join(
            [html_summary("Codebook", self.columns, self), *(f"<p>{text}</p>" for text in grouped(self))]
        )

    def knows(self, fingerprints: tuple[str, ...]) -> bool:
        """Tell whether rows with such fingerprints, or some of them, seem to be those it was fitted on."""
        known_parts = {part for part in fingerprints if " " in part and not part.startswith("0 ")}
        return any(not known_parts.isdisjoint(known) for known in self.fingerprints)


def grouped(book: Codebook) -> list[str]:
    """Return the line that says why values are rare though nobody asked for that; none if they are not."""
    least, aim = book.settings["min_count"], book.settings["aim"]
    is_default = book.gain is None and least == default_of("min_count", aim, with_folds=False)
    if not (book.n_rare and is_default):
        return []
    return [f"values with fewer than {number(least, 'row')} are grouped; counts with folds need no such limit"]
