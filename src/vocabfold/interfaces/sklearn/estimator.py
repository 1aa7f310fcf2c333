"""The scikit-learn transformer.

The steps are those of `vf.fit_transform`: count, fit, encode. What scikit-learn hands over becomes an Arrow
table first; what the transformer has learnt is counts and a codebook, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from vocabfold.codebook.codebook import Codebook
from vocabfold.codebook.settings import BLIND, OPTIONS, FitSettings
from vocabfold.counts.counting import count
from vocabfold.counts.counts import Counts
from vocabfold.encoding.crossfit import FoldedStore, Folds, RowFolds
from vocabfold.encoding.encoder import Ids, check_kinds, offsets
from vocabfold.encoding.frames import encode_table
from vocabfold.encoding.plan import Plan
from vocabfold.errors import InputError
from vocabfold.fitting.fitting import fit_counts
from vocabfold.interfaces.sklearn import arrays
from vocabfold.interfaces.sklearn.inverse import Members, decoded, ids_of, representatives
from vocabfold.support import notes

_MANY_PARTS = 16  # of counts, which are added up from then on


class VocabularyCompressor(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Replace the values of categorical columns by a few ids that keep their information about a binary label.

    `fit_transform(X, y)` encodes training rows out of fold: no id leaks the label of its row. It differs from
    `fit(X, y).transform(X)` on purpose, as that of `TargetEncoder` does; both use the ids of one codebook, but
    with unseen="own", `fit_transform` also merges ids with few training rows, which `fit` does not know. Train
    a model on the result of `fit_transform`, as `Pipeline` does by itself; `transform` is for all other rows,
    and warns if it is given those of the fit.

    Parameters
    ----------
    budget : int or "auto"
        Ids over all columns.
    aim : {"model", "information"}
        "model": ids to train a model on. "information": the objective of the paper, and nothing else.
    method, ..., seed
        As for `vf.fit_transform`: `min_count` is 1 by default, whichever method learns the rows.
    cv : int, splitter or iterable of splits
        Folds of `fit_transform`. With a number, each class is assigned to so many at random. With anything
        else, each row must be in the test part of exactly one split.
    positive : optional
        The value of y that is positive; by default the larger one, `classes_[1]`.
    offset_ids : bool
        Number the ids over all columns, for one embedding table, instead of from 0 in each.
    random_state : int, RandomState or None
        The randomness by which rows are assigned to folds, if `cv` is a number.

    Attributes
    ----------
    codebook_ : Codebook
        The ids of all values, to save, to load elsewhere, to serve, or to evaluate on other rows.
    counts_ : Counts
        What was counted, after `fit_transform` by fold: `vf.fit(compressor.counts_, budget)` then tries another
        budget.
    sizes_ : dict
        Ids of each column.
    information_ : float
        What the ids tell about y in the rows that were counted, in nats per row and summed over the columns.
    members_ : Mapping
        For each column a list with the values of each id, those with most rows first; made when asked for.
    classes_ : array
        The two values of y.
    n_features_in_, feature_names_in_
        The columns of X; the latter only if they have names.

    See Also
    --------
    vocabfold.fit_transform : The same for files and frames, without scikit-learn.

    Notes
    -----
    X is an array, a list, a pandas or polars frame or an Arrow table. Its columns hold text, numbers, booleans,
    dates or timestamps without a time zone, one kind each; missing (None, NaN, NaT, pd.NA) is a value like any
    other. All columns are folded, numbers included: choose the categorical ones with `ColumnTransformer`.

    Examples
    --------
    >>> import pandas as pd
    >>> import vocabfold as vf
    >>> X = pd.DataFrame({"site": ["a", "b", "a", "c"] * 30, "app": ["x", "x", None, "y"] * 30})
    >>> y = ["yes", "no", "yes", "yes"] * 30
    >>> compressor = vf.VocabularyCompressor(budget=10).set_output(transform="pandas")
    >>> ids = compressor.fit_transform(X, y)
    >>> ids.head(2)
       site  app
    0     2    1
    1     0    1
    >>> compressor.transform(pd.DataFrame({"site": ["b", "new"], "app": [None, "x"]}))
       site  app
    0     0    0
    1     1    1
    >>> compressor.sizes_
    {'site': 3, 'app': 3}
    """

    __module__ = "vocabfold"  # where it is imported from, in pickles too

    cv: Any
    positive: Any
    offset_ids: bool
    random_state: Any
    counts_: Counts
    classes_: NDArray[Any]
    _settings: FitSettings  # as they were when rows were learnt
    _codebook: Codebook | None  # None: not made yet
    _representatives: dict[str, NDArray[Any]] | None
    _known: frozenset[str]  # fingerprints of the rows that were learnt

    def __init__(
        self,
        budget: int | str = 1000,
        *,
        aim: str = "model",
        method: str = "exact",
        allocation: str = "joint",
        smoothing: float | str | None = None,
        min_count: int | None = None,
        dedicated_min: int = 30,
        shared_ids: int = 8,
        unseen: str = "other",
        epsilon: float = 0.1,
        shards: int = 1,
        seed: int = 0,
        cv: Any = 5,
        positive: Any = None,
        offset_ids: bool = False,
        random_state: Any = 0,
    ) -> None:
        self.__dict__.update({name: given for name, given in locals().items() if name != "self"})

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the ids of all values of X.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The values.
        y : array of shape (n_rows,)
            The label, with two distinct values.
        sample_weight : array of shape (n_rows,), optional
            A row of weight 3 counts as three rows in the rates of ids and in what they keep, but as one row
            for `dedicated_min`, `min_count` and `smoothing`. Weights that are not whole are rounded to 2**-20
            rows, so they should not all be far below 1.

        Returns
        -------
        self

        Raises
        ------
        InputError
            The rows or the options cannot be used.
        """
        self._learn(X, y, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn the ids of all values of X, and return those of X, out of fold, to train a model on.

        A row is encoded by the rows of the other folds; see the class for why.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        array of shape (n_rows, n_features)
            int32 ids; a frame, if `set_output` asks for one.
        """
        table, folds = self._learn(X, y, sample_weight, with_folds=True)
        store = FoldedStore(self.codebook_, self.counts_, self.counts_.memory_limit)
        return self._encoded(table, Folds(store, self.counts_.fold_column), folds)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add the counts of more rows to those that were learnt before.

        The result is that of a `fit` on all rows, with columns of the kinds that they have in the first of
        them; ids may change with each call. The codebook is made when it is next asked for.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`; later rows may lack a class, or values.
        classes : array of the two values of y, optional
            Needed at the first call, if its rows may lack a class.

        Returns
        -------
        self
        """
        settings = self._given()
        is_first = not self.__sklearn_is_fitted__()
        if classes is not None:
            classes = arrays.classes_of(arrays.labels(list(classes), len(classes)))
        if not is_first:
            if classes is not None and classes.tolist() != self.classes_.tolist():
                raise InputError(f"classes were {self.classes_.tolist()} at first, got {classes.tolist()}.")
            classes = self.classes_
        X = arrays.matrix(X)
        validate_data(self, X, reset=is_first, skip_check_array=True)
        table = arrays.adapted(arrays.table(X, self._names()), {} if is_first else self.counts_.kinds)
        counts, classes, _ = self._counted(settings, X, table, y, sample_weight, classes)
        known = arrays.fingerprint(table)
        if not is_first:
            counts, known = self.counts_.without_folds() + counts, known | self._known
        if len(counts.parts) > _MANY_PARTS and not any(part.folder for part in counts.parts):
            counts = counts.compacted()
        self.counts_, self.classes_, self._settings, self._known = counts, classes, settings, known
        self._codebook = self._representatives = None
        return self

    def transform(self, X: Any) -> Any:
        """Return the ids of the values of X.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            Rows that were not fitted; for training rows, see `fit_transform`.

        Returns
        -------
        array of shape (n_rows, n_features)
            int32 ids; a frame, if `set_output` asks for one.

        Raises
        ------
        InputError
            A column is of another kind than at fit; or, with unseen="error", a value was not seen there.

        Warns
        -----
        UserWarning
            The rows seem to be those of the fit.
        """
        book = self.codebook_
        X = arrays.matrix(X, least_rows=0)
        validate_data(self, X, reset=False, skip_check_array=True)
        table = arrays.adapted(arrays.table(X, self._names()), {})
        # Where all was missing at fit, whatever is there now was not seen.
        table = arrays.spelt(table, [name for name, kind in self.counts_.kinds.items() if kind == "missing"])
        check_kinds(book, table.schema, "X")
        known = arrays.fingerprint(table, like=self._known) if book.settings["method"] not in BLIND else ()
        if not self._known.isdisjoint(known):
            notes.warn(
                "X looks like the training data: transform() leaks its labels through infrequent values. "
                "Use fit_transform(X, y) for training; score on held-out rows."
            )
        return self._encoded(table)

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Return a value for each id: the one with most rows; `members_` has all of them.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            Ids, as `transform` returns them; in a frame, columns are found by their names, if it has them.

        Returns
        -------
        array of shape (n_rows, n_features)
            Of objects, unless all columns hold numbers of one type. None, or NaN among floats, stands for
            missing, and for ids that no value has.

        Raises
        ------
        InputError
            An entry is no id of its column.
        """
        book = self.codebook_
        ids = ids_of(book, X)
        if self._representatives is None:
            self._representatives = representatives(book)
        return decoded(book, self._representatives, offsets(book, self.offset_ids), ids)

    @property
    def codebook_(self) -> Codebook:
        """The ids of all values."""
        check_is_fitted(self)
        if self._codebook is None:
            try:
                self._codebook = fit_counts(self.counts_, self._settings)
            except InputError as error:  # an attribute that cannot be made is not there
                raise NotFittedError(f"there is no codebook yet: {error}") from error
        return self._codebook

    @property
    def sizes_(self) -> dict[str, int]:
        """Ids of each column."""
        return self.codebook_.sizes

    @property
    def information_(self) -> float:
        """What the ids tell about y, in nats per row and summed over the columns."""
        return self.codebook_.information

    @property
    def members_(self) -> Mapping[str, list[list[Any]]]:
        """The values of each id of each column."""
        return Members(self.codebook_)

    def _learn(
        self, X: Any, y: Any, sample_weight: Any, with_folds: bool = False
    ) -> tuple[pa.Table, Ids | None]:
        """Count all rows and fit the counts; return the rows and their folds."""
        self.__dict__.pop("counts_", None)  # of other rows, whatever comes of these
        settings = self._given()
        if with_folds:
            settings.check_training()
        X = arrays.matrix(X)
        validate_data(self, X, reset=True, skip_check_array=True)
        table = arrays.adapted(arrays.table(X, self._names()), {})
        counts, classes, folds = self._counted(settings, X, table, y, sample_weight, None, with_folds)
        self._codebook, self._representatives = fit_counts(counts, settings), None
        self.counts_, self.classes_ = counts, classes
        self._settings, self._known = settings, arrays.fingerprint(table)
        return table, folds

    def _counted(
        self,
        settings: FitSettings,
        X: Any,
        table: pa.Table,
        y: Any,
        sample_weight: Any,
        classes: Any,
        with_folds: bool = False,
    ) -> tuple[Counts, NDArray[Any], Ids | None]:
        """Return the counts of rows, the two classes, and the fold of each row."""
        labels = arrays.labels(y, table.num_rows)
        classes = arrays.classes_of(labels) if classes is None else arrays.known_classes(labels, classes)
        positive = arrays.positive_of(classes, self.positive)
        features, folds, roles = table.column_names, None, dict[str, Any]()
        label = self.counts_.label if self.__sklearn_is_fitted__() else getattr(y, "name", None)
        name = label if label and isinstance(label, str) else "y"
        table, roles["label"] = arrays.with_column(table, name, labels)
        if sample_weight is not None:
            weights = arrays.weights(sample_weight, table.num_rows)
            table, roles["weight"] = arrays.with_column(table, "sample_weight", weights)
        if with_folds:
            folds = arrays.folds(self.cv, X, arrays.are(labels, positive), self.random_state)
            table, roles["fold_column"] = arrays.with_column(table, "fold", pa.array(folds))
        counts = count(table, features=features, positive=positive, **roles)
        return replace(counts, sources=(arrays.described(X),)), classes, folds

    def _encoded(self, table: pa.Table, folds: Folds | None = None, of_rows: Ids | None = None) -> Ids:
        """Return the ids of rows as one array; out of fold, if their folds are given."""
        plan = Plan.of(self.codebook_, offset_ids=self.offset_ids, folds=folds, is_counted=True)
        ids, _ = encode_table(plan, table, None if of_rows is None else RowFolds(of_rows))
        return np.column_stack(list(ids.values()))

    def _given(self) -> FitSettings:
        """Return the options of `vf.fit`, checked."""
        return FitSettings.of({name: getattr(self, name) for name in OPTIONS}, with_folds=True)

    def _names(self) -> list[str]:
        """Return the names of the columns, or x0, x1 and so on."""
        return [str(name) for name in self.get_feature_names_out()]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "counts_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=False)  # of y: scikit-learn has no other tag for it
        tags.transformer_tags.preserves_dtype = []  # ids are int32
        tags.non_deterministic = True  # which says that fit_transform differs from fit().transform()
        return tags
