"""The door for Spark: an Estimator and a Model of pyspark.ml, for its Pipelines.

`vf.count`, `vf.fit`, `vf.fit_transform` and `Codebook.transform` take frames of Spark as they are; this is for
stages that are fitted, saved and loaded together.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vocabfold.codebook.codebook import Codebook, grouped
from vocabfold.codebook.saved import load
from vocabfold.codebook.settings import BLIND, OPTIONS, FitSettings
from vocabfold.counts.counting import count
from vocabfold.counts.counts import Counts
from vocabfold.encoding.crossfit import Folds
from vocabfold.encoding.plan import Plan
from vocabfold.encoding.spark import encode_plainly
from vocabfold.errors import InputError, MissingDependency
from vocabfold.fitting.fitting import fit_counts
from vocabfold.io.engines.spark import NAME, fingerprint, numbered, session_of
from vocabfold.support import checks, notes

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
    raise MissingDependency.of("vocabfold.spark", "pyspark", "spark") from missing

_CODEBOOK = "codebook"  # the folder in that of a saved model


def _anything(value: Any) -> Any:
    """Take a parameter as it is: `vf.fit` checks it."""
    return value


class _Shared(HasInputCols, HasOutputCols):
    """The parameters that the estimator and its model share."""

    offsetIds: Param[bool] = Param(
        Params._dummy(),
        "offsetIds",
        "Number the ids over all columns, for one embedding table.",
        TypeConverters.toBoolean,
    )


def _param(name: str, doc: str) -> Param[Any]:
    return Param(Params._dummy(), name, doc, _anything)


def _camel(name: str) -> str:
    """Return what Spark calls an option of `fit`."""
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _with_options(cls: type) -> type:
    """Give a stage a parameter for each option of `fit`."""
    for name, option in OPTIONS.items():
        setattr(cls, _camel(name), _param(_camel(name), option.help))
    return cls


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
@_with_options
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
        fold, as `vf.fit_transform` does, so that it leaks no labels to the later stages of a Pipeline.
    budget : int or "auto"
        Ids in all.
    offsetIds : bool
        Number the ids over all columns.
    aim, ..., seed
        As for `vf.fit`, in camel case; without a `foldCol`, rows are counted without folds.
    """

    foldCol = _param("foldCol", "Column with the fold of each row: 0, 1, 2, ...")
    positive = _param("positive", "The positive value of a label that is not 0/1 or boolean.")

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
        defaults = {_camel(name): option.default for name, option in OPTIONS.items()}
        given = {name: default for name, default in defaults.items() if default is not None}
        self._setDefault(labelCol="label", offsetIds=False, **given)
        self.setParams(**self._input_kwargs)  # type: ignore[attr-defined]

    def setParams(self, **given: Any) -> VocabularyCompressor:
        """Set parameters by name; None leaves one as it is."""
        unknown = [name for name in given if not self.hasParam(name)]
        if unknown:
            raise InputError(f"VocabularyCompressor has no parameter {unknown[0]!r}.")
        self._set(**given)
        return self

    def _value_of(self, name: str) -> Any:
        return self.getOrDefault(name) if self.isDefined(name) else None

    def _fit(self, dataset: DataFrame) -> VocabularyCompressorModel:
        session_of(dataset)
        # An empty name is none, as for the stages of pyspark.ml.
        fold_column, weight = (self._value_of(name) or None for name in ("foldCol", "weightCol"))
        given = {name: self._value_of(_camel(name)) for name in OPTIONS}
        settings = FitSettings.of(given, with_folds=bool(fold_column))
        if fold_column:
            settings.check_training()
        counts = count(
            dataset,
            self.getLabelCol(),
            self._value_of("inputCols"),
            positive=self._value_of("positive"),
            weight=weight,
            fold_column=fold_column,
        )
        outputs = self._value_of("outputCols")
        if outputs and len(outputs) != len(counts.features):
            raise InputError(
                f"outputCols has {len(outputs)} names for {len(counts.features)} columns; give one name for "
                "each."
            )
        book = fit_counts(counts, settings)
        if given["min_count"] is None:
            for text in grouped(book):
                notes.warn(f"{text}: set foldCol or minCount.")
        return self._copyValues(VocabularyCompressorModel(book, counts if fold_column else None))


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
            notes.warn(
                "the frame is the one that the stage was fitted on: transform() leaks its labels through "
                "infrequent values. Set foldCol, or fit on older rows."
            )
        return self._encoded(dataset, self._counts if is_fitted else None)

    def transformTraining(self, dataset: DataFrame) -> DataFrame:
        """Encode rows that the stage was fitted on out of fold, whatever was done to their frame since.

        `transform` does so only for the very frame that was fitted: with a filter or one more
        column it is another query. For a stage that was fitted with `foldCol`, in the same session.
        """
        session_of(dataset)
        if self._counts is None:
            raise InputError(
                "the stage has no counts by fold, as it was fitted without foldCol, or loaded; fit it with "
                "foldCol in this session."
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
            f"{path!r} is on {scheme}, but codebooks are saved to folders; give one that the driver and the "
            "workers share."
        )
    return Path(rest if found else path.removeprefix("file:"))
