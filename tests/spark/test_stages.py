"""The stages of pyspark.ml."""

import numpy as np
import pyarrow as pa
import pytest

import vocabfold as vf
from support.frames import in_order, read

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    site, user = np.minimum(rng.zipf(1.4, 2000), 40), rng.integers(0, 200, 2000)
    return pa.table(
        {
            "row": np.arange(2000),
            "site": [f"s{i}" for i in site],
            "a user": [f"u{i}" for i in user],
            "fold": rng.integers(0, 3, 2000),
            "label": (rng.random(2000) < 0.1 + 0.4 * (site % 2) + 0.3 * (user % 3 == 0)).astype(np.int32),
        }
    )


@pytest.fixture(scope="module")
def frame(spark, table, tmp_path_factory):
    return read(spark, table, tmp_path_factory.mktemp("rows") / "rows.parquet")


def test_training_rows_are_encoded_out_of_fold(frame, table):
    from vocabfold.spark import VocabularyCompressor

    fitted = VocabularyCompressor(inputCols=["site", "a user"], foldCol="fold", budget=30).fit(frame)
    book, expected = vf.fit_transform(table, "label", 30, features=["site", "a user"], fold_column="fold")
    assert fitted.codebook.digest == book.digest
    assert in_order(fitted.transform(frame))["a user"].to_pylist() == expected["a user"].to_pylist()
    new = frame.where("row < 500")
    as_usual = book.transform(table.slice(0, 500))["a user"].to_pylist()
    assert in_order(fitted.transform(new))["a user"].to_pylist() == as_usual
    assert as_usual != expected["a user"].to_pylist()[:500]
    again = in_order(fitted.transformTraining(new.withColumn("more", new.row)))
    assert again["a user"].to_pylist() == expected["a user"].to_pylist()[:500]


@pytest.mark.slow
def test_a_pipeline_learns_from_ids_out_of_fold_and_survives_a_disk(frame, table, tmp_path):
    from pyspark.ml import Pipeline, PipelineModel
    from pyspark.ml.classification import LogisticRegression
    from pyspark.ml.feature import OneHotEncoder

    from vocabfold.spark import VocabularyCompressor

    compressor = VocabularyCompressor(inputCols=["site", "a user"], foldCol="fold", budget=30)
    one_hot = OneHotEncoder(inputCols=["site"], outputCols=["vector"], handleInvalid="keep")
    model = Pipeline(stages=[compressor, one_hot, LogisticRegression(featuresCol="vector", maxIter=2)]).fit(
        frame
    )
    book, expected = vf.fit_transform(table, "label", 30, features=["site", "a user"], fold_column="fold")
    fitted = model.stages[0]
    assert fitted.codebook.digest == book.digest
    assert in_order(fitted.transform(frame))["a user"].to_pylist() == expected["a user"].to_pylist()
    new = frame.where("row < 500")
    model.save(str(tmp_path / "pipeline"))
    loaded = PipelineModel.load(str(tmp_path / "pipeline"))
    chances = [
        stages.transform(new).orderBy("row").select("probability").collect() for stages in (model, loaded)
    ]
    assert chances[0] == chances[1]
    folder = next((tmp_path / "pipeline" / "stages").glob("0_*"))
    assert vf.load(folder / "codebook").digest == book.digest
    assert vf.load(folder / "codebook").digest == loaded.stages[0].codebook.digest


def test_ids_go_to_columns_of_their_own(frame, table, tmp_path):
    from vocabfold.spark import VocabularyCompressor, VocabularyCompressorModel

    compressor = VocabularyCompressor(
        inputCols=["a user", "site"],
        outputCols=["user id", "site id"],
        budget=30,
        offsetIds=True,
        aim="information",
    )
    compressor.save(str(tmp_path / "estimator"))
    compressor = VocabularyCompressor.load(str(tmp_path / "estimator"))
    assert compressor.getBudget() == 30
    assert compressor.setBudget(31).setInputCols(["a user", "site"]).getOrDefault("budget") == 31
    assert "Number of ids" in compressor.explainParam("budget")
    model = compressor.fit(frame.where("row < 1000"))
    model.write().overwrite().save(f"file://{tmp_path}/a model")
    model = VocabularyCompressorModel.load(str(tmp_path / "a model"))
    assert model.getOutputCols() == ["user id", "site id"]
    found = in_order(model.transform(frame))
    assert found.select(table.column_names).equals(table)
    expected = model.codebook.transform(table, offset_ids=True)
    assert found["user id"].to_pylist() == expected["a user"].to_pylist()
    assert found["site id"].to_pylist() == expected["site"].to_pylist()


@pytest.mark.parametrize("options", [{}, pytest.param({"outputCols": ["id"]}, marks=pytest.mark.slow)], ids=str)
def test_ids_that_tell_labels_are_warned_of(frame, options):
    from vocabfold.spark import VocabularyCompressor

    model = VocabularyCompressor(inputCols=["site"], budget=9, minCount=1, **options).fit(frame)
    with pytest.warns(UserWarning, match="the frame is the one that the stage was fitted on: .* Set foldCol"):
        model.transform(frame)


def test_a_stage_without_folds_says_that_values_are_grouped(frame, table, recwarn):
    from vocabfold.spark import VocabularyCompressor

    with pytest.warns(
        UserWarning,
        match="fewer than 20 rows are grouped; counts with folds need no such limit: set foldCol or minCount",
    ):
        model = VocabularyCompressor(inputCols=["a user"], budget=9).fit(frame)
    bare = vf.fit(vf.count(table, "label", "a user"), 9)
    assert model.codebook.digest == bare.digest
    recwarn.clear()
    for options in ({"foldCol": "fold"}, {"minCount": 1}, {"minCount": 20}):
        model = VocabularyCompressor(inputCols=["a user"], budget=9, **options).fit(frame)
        assert model.codebook.settings["min_count"] == options.get("minCount", 1)
    assert not [one for one in recwarn if one.category is not vf.AdviceWarning]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "budget is missing"),
        ({"budget": 9, "aim": "modle"}, "aim must be"),
        ({"budget": 9, "inputCols": ["sight"]}, "column 'sight' .* is not in the Spark frame"),
        (
            {"budget": 9, "inputCols": ["site"], "outputCols": ["a", "b"]},
            "outputCols has 2 names for 1 columns",
        ),
        (
            {"budget": 9, "minCount": 1, "inputCols": ["site"], "outputCols": ["fold"]},
            "must be new names, .*'fold' is not",
        ),
    ],
)
def test_errors_say_what_to_do(frame, options, message):
    from vocabfold.spark import VocabularyCompressor

    with pytest.raises(vf.InputError, match=message):
        VocabularyCompressor(**options).fit(frame).transform(frame.limit(1))


def test_object_stores_are_refused(frame):
    from vocabfold.spark import VocabularyCompressor

    model = VocabularyCompressor(inputCols=["site"], budget=9, minCount=1).fit(frame)
    with pytest.raises(vf.InputError, match="'s3://bucket/model' is on s3, but codebooks are saved to folders"):
        model.save("s3://bucket/model")
