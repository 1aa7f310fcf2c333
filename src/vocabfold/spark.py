"""The door for Spark: an Estimator and a Model of pyspark.ml, for its Pipelines.

`vf.count`, `vf.fit`, `vf.fit_transform` and `Codebook.transform` take frames of Spark as they are; this is for
whoever works with stages that are fitted, saved and loaded together.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from vocabfold.codebook.codebook import BLIND, Codebook
from vocabfold.codebook.saved import load
from vocabfold.counts.counting import count
from vocabfold.counts.counts import Counts
from vocabfold.encoding.crossfit import Folds
from vocabfold.encoding.plan import Plan
from vocabfold.encoding.spark import encode_plainly
from vocabfold.errors import InputError, MissingDependency
from vocabfold.fitting.fitting import fit
from vocabfold.fitting.settings import check_options, check_training
from vocabfold.io.engines.spark import NAME, fingerprint, numbered, session_of
from vocabfold.support import checks

try:
    from pyspark import keyword_only
    from pyspark.ml import Estimator, Model
    from pyspark.ml.param import Param, Params, TypeConverters
    from pyspark.ml.param.shared import HasInputCols, HasLabelCol, HasOutputCols, HasWeightCol
    from pyspark.ml.util import (
        DefaultParamsReadable,
        DefaultParamsReader,
        DefaultParamsWritable,
        DefaultParamsWriter,
        MLReadable,
        MLReader,
        MLWritable,
        MLWriter,
    )
    from pyspark.sql import DataFrame
except ImportError as missing:
    raise MissingDependency("vocabfold.spark needs pyspark: pip install 'vocabfold[spark]'.") from missing

_CODEBOOK = "codebook"  # the folder in that of a saved model


def _anything(value: Any) -> Any:
    """Take a parameter as it is: `vf.fit` says what is wrong with it."""
    return value


class _Shared(HasInputCols, HasOutputCols):
    """What the estimator and its model are both told."""

    offsetIds: Param[bool] = Param(
        Params._dummy(), "offsetIds", "number the ids over all columns", TypeConverters.toBoolean
    )


def _param(name: str, doc: str) -> Param[Any]:
    return Param(Params._dummy(), name, doc, _anything)


def _with_accessors(cls: type) -> type:
    """Give a stage a setter and a getter for each of its parameters, as all stages of Spark have them."""

    def accessors(name: str) -> dict[str, Any]:
        ending = name[0].upper() + name[1:]
        return {
            f"set{ending}": lambda self, value: self._set(**{name: value}),
            f"get{ending}": lambda self: self.getOrDefault(name),
        }

    for name in [name for name in dir(cls) if isinstance(getattr(cls, name), Param)]:
        for accessor, function in accessors(name).items():
            if not hasattr(cls, accessor):
                function.__name__ = accessor
                function.__doc__ = f"{accessor[:3].capitalize()} the parameter `{name}`."
                setattr(cls, accessor, function)
    return cls


@_with_accessors
class VocabularyCompressor(
    Estimator["VocabularyCompressorModel"],
    _Shared,
    HasLabelCol,
    HasWeightCol,
    DefaultParamsReadable["VocabularyCompressor"],
    DefaultParamsWritable,
):
    """Fold the values of columns into at most `budget` ids; an Estimator of pyspark.ml.

    Parameters
    ----------
    inputCols : list of str, optional
        The columns to fold; by default every text column.
    outputCols : list of str, optional
        Where their ids go; by default to the place of the values.
    labelCol : str
        The column with two values, "label" by default; `positive` as for `vf.count`.
    weightCol : str, optional
        The weight of each row.
    foldCol : str, optional
        The fold of each row, 0, 1, 2, ... With it, the model encodes the frame that it was fitted on out of
        fold, as `vf.fit_transform` does, so that the later stages of a Pipeline are not handed its labels.
    budget : int or "auto"
        Ids in all.
    offsetIds : bool
        Number the ids over all columns.
    aim, method, allocation, smoothing, minCount, dedicatedMin, sharedIds, unseen, epsilon, shards, seed
        As for `vf.fit`; with a `foldCol`, minCount is 1 by default.
    """

    foldCol = _param("foldCol", "column with the fold of each row: 0, 1, 2, ...")
    positive = _param("positive", "the value of the label that is positive, if they are not 0 and 1")
    budget = _param("budget", "ids in all, or 'auto'")
    aim = _param("aim", "model: ids for a model to learn from; information: the most information kept")
    method = _param("method", "how values are folded: exact, greedy, threshold, ...")
    allocation = _param("allocation", "how the budget is split over the columns: joint, uniform, information")
    smoothing = _param("smoothing", "rows at the overall rate that each value is credited with, or 'auto'")
    minCount = _param("minCount", "rows below which values are pooled")
    dedicatedMin = _param("dedicatedMin", "the fewest rows that earn a value an id of its own")
    sharedIds = _param("sharedIds", "ids for each column that has a tail, on average")
    unseen = _param("unseen", "what values get that are not in the codebook: other, own, error")
    epsilon = _param("epsilon", "by which part thresholds fall, for method threshold or stochastic")
    shards = _param("shards", "shards of each column, for method threshold")
    seed = _param("seed", "of the samples, for method stochastic")

    @keyword_only
    def __init__(
        self,
        *,
        inputCols: list[str] | None = None,
        outputCols: list[str] | None = None,
        labelCol: str = "label",
        weightCol: str | None = None,
        foldCol: str | None = None,
        positive: Any = None,
        budget: int | str | None = None,
        offsetIds: bool = False,
        aim: str = "model",
        method: str = "exact",
        allocation: str = "joint",
        smoothing: float | str | None = None,
        minCount: int | None = None,
        dedicatedMin: int = 30,
        sharedIds: int = 8,
        unseen: str = "other",
        epsilon: float = 0.1,
        shards: int = 1,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self._setDefault(
            labelCol="label",
            offsetIds=False,
            aim="model",
            method="exact",
            allocation="joint",
            dedicatedMin=30,
            sharedIds=8,
            unseen="other",
            epsilon=0.1,
            shards=1,
            seed=0,
        )
        self.setParams(**self._input_kwargs)  # type: ignore[attr-defined]

    def setParams(self, **given: Any) -> VocabularyCompressor:
        """Set parameters by name; None leaves one as it is."""
        unknown = [name for name in given if not self.hasParam(name)]
        if unknown:
            raise InputError(f"VocabularyCompressor has no parameter {unknown[0]!r}.")
        self._set(**given)
        return self

    def _told(self, name: str) -> Any:
        return self.getOrDefault(name) if self.isDefined(name) else None

    def _fit(self, dataset: DataFrame) -> VocabularyCompressorModel:
        session_of(dataset)
        budget = self._told("budget")
        # An empty name is none, as for the stages of pyspark.ml.
        fold_column, weight = (self._told(name) or None for name in ("foldCol", "weightCol"))
        if budget is None:
            raise InputError("budget is missing: give a number of ids, or 'auto'.")
        names = ("aim", "method", "allocation", "smoothing", "unseen", "epsilon", "shards", "seed")
        options = {name: self._told(name) for name in names}
        renamed = {"minCount": "min_count", "dedicatedMin": "dedicated_min", "sharedIds": "shared_ids"}
        options |= {option: self._told(name) for name, option in renamed.items()}
        if fold_column and options["min_count"] is None:
            options["min_count"] = 1
        check_options(budget, **options)
        if fold_column:
            check_training(options["unseen"], options["min_count"], options["method"])
        counts = count(
            dataset,
            self.getLabelCol(),
            self._told("inputCols"),
            positive=self._told("positive"),
            weight=weight,
            fold_column=fold_column,
        )
        outputs = self._told("outputCols")
        if outputs and len(outputs) != len(counts.features):
            raise InputError(
                f"outputCols has {len(outputs)} names for {len(counts.features)} columns; give one for each."
            )
        model = VocabularyCompressorModel(fit(counts, budget, **options), counts if fold_column else None)
        return self._copyValues(model)


@_with_accessors
class VocabularyCompressorModel(Model, _Shared, MLReadable["VocabularyCompressorModel"], MLWritable):
    """A codebook as a Transformer of pyspark.ml.

    Attributes
    ----------
    codebook : Codebook
        What was fitted.
    """

    def __init__(self, codebook: Codebook | None = None, counts: Counts | None = None) -> None:
        super().__init__()
        self._setDefault(offsetIds=False)
        self._codebook = codebook
        self._counts = counts  # by fold, of the frame that it was fitted on

    @property
    def codebook(self) -> Codebook:
        """What was fitted."""
        assert self._codebook is not None
        return self._codebook

    def _transform(self, dataset: DataFrame) -> DataFrame:
        session_of(dataset)
        is_fitted = self.codebook.knows((fingerprint(dataset),))
        if is_fitted and self._counts is None and self.codebook.settings["method"] not in BLIND:
            warnings.warn(
                "the frame is the one that the stage was fitted on: its ids tell the labels of these rows, and "
                "later stages trust rare values too much; give foldCol=, or fit on older rows.",
                stacklevel=3,
            )
        return self._encoded(dataset, self._counts if is_fitted else None)

    def transformTraining(self, dataset: DataFrame) -> DataFrame:
        """Encode rows that the stage was fitted on out of fold, whatever was done to their frame since.

        `transform` does so for the very frame that was fitted, and knows no other: with a filter or one more
        column it is another query. For a stage that was fitted with `foldCol`, in the same session.
        """
        session_of(dataset)
        if self._counts is None:
            raise InputError(
                "the stage was fitted without foldCol, or loaded; its counts by fold are not there."
            )
        return self._encoded(dataset, self._counts)

    def _encoded(self, dataset: DataFrame, counts: Counts | None) -> DataFrame:
        book = self.codebook
        folds = None if counts is None else Folds.of(book, counts, None, None)
        plan = Plan.of(book, offset_ids=self.getOrDefault("offsetIds"), folds=folds)
        if not self.isSet("outputCols"):
            encoded: DataFrame = encode_plainly(plan, dataset)
            return encoded
        outputs = dict(zip(book.features, self.getOutputCols(), strict=True))
        names = dataset.columns
        taken = [name for name in outputs.values() if name in names]
        if taken or len(set(outputs.values())) < len(outputs):
            wrong = (taken or list(outputs.values()))[0]
            raise InputError(f"outputCols must be new names, each given once; {wrong!r} is not.")
        checks.known("column", book.features, names, NAME)
        # Values are copied to the end, ids take their place, and then the two change places.
        place = {names.index(name): len(names) + i for i, name in enumerate(outputs)}
        copies = [f"c{i} AS c{j}" for i, j in place.items()]
        doubled = numbered(dataset).selectExpr("*", *copies).toDF(*names, *outputs.values())
        both = numbered(encode_plainly(plan, doubled))
        order = [place.get(i, i) for i in range(len(names))] + list(place)
        swapped: DataFrame = both.select(*[f"c{i}" for i in order]).toDF(*names, *outputs.values())
        return swapped

    def write(self) -> MLWriter:
        """Return what saves the model; its folder holds a codebook that `vf.load` reads."""
        return _Writer(self)

    @classmethod
    def read(cls) -> MLReader[VocabularyCompressorModel]:
        """Return what loads a model."""
        return _Reader()


class _Writer(MLWriter):
    """Writes the parameters as Spark does, and the codebook beside them."""

    def __init__(self, model: VocabularyCompressorModel) -> None:
        super().__init__()
        self._model = model

    def save(self, path: str) -> None:
        """Save to a folder that the driver and the workers share."""
        super().save(f"file://{_local(path).absolute()}")  # all of it, whatever Spark's own file system is

    def saveImpl(self, path: str) -> None:
        DefaultParamsWriter.saveMetadata(self._model, path, self.sparkSession)
        self._model.codebook.save(_local(path) / _CODEBOOK)


class _Reader(MLReader["VocabularyCompressorModel"]):
    """Reads what the writer wrote."""

    def load(self, path: str) -> VocabularyCompressorModel:
        folder = _local(path).absolute()
        metadata = DefaultParamsReader.loadMetadata(f"file://{folder}", self.sparkSession)
        model = VocabularyCompressorModel(load(folder / _CODEBOOK))
        model._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(model, metadata)
        return model


def _local(path: str) -> Path:
    """Return a path as this machine has it: codebooks are not written to object stores yet."""
    scheme, found, rest = path.partition("://")
    if found and scheme != "file":
        raise InputError(
            f"{path!r} is on {scheme}, and codebooks are saved to folders; give one that the driver and "
            "the workers share."
        )
    return Path(rest if found else path.removeprefix("file:"))
