"""Bytes -> words: whole command lines, and the texts that options are read from."""

import contextlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import vocabfold as vf
from harden.lib.commands import command
from harden.lib.corpus import ODD_WORDS
from harden.lib.fuzz.choices import DONE, LABEL, REFUSED, Choices, refusals, rows
from harden.lib.fuzz.files import Text
from vocabfold.errors import in_shell
from vocabfold.io.folders import headers, places


class Words:
    """Bytes -> command lines: well-formed ones, with words replaced, added and taken away."""

    def __init__(self, folder: Path) -> None:
        import typer.main

        from vocabfold.interfaces.cli.commands import app

        self.home = folder / "home"
        self.home.mkdir(exist_ok=True)
        os.environ["HOME"] = str(self.home)
        os.environ["COLUMNS"] = "80"
        self._furnish()
        commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
        self.options = {
            verb: [name for option in command.params for name in option.opts if name.startswith("-")]
            for verb, command in commands.items()
        }
        self.bases = [line.split() for line in BASES]
        self.seeds = [
            bytes([i, *more]) for i in range(len(BASES)) for more in ((0,), (1, 1, 5, 2, 9), (3, 2, 4, 1))
        ]

    def _furnish(self) -> None:
        """Put files and folders of all kinds into the place where commands run."""
        os.chdir(self.home)
        table = rows(200)
        pq.write_table(table, "rows.parquet")
        pq.write_table(table.slice(0, 0), "none.parquet")
        pa.csv.write_csv(table, "rows.csv")
        Path("rows.jsonl").write_text("\n".join(json.dumps(row) for row in table.to_pylist()), "utf-8")
        Path("criteo.txt").write_bytes(Text(self.home).seeds[-1][3:] * 9)
        Path("empty.csv").write_bytes(b"")
        Path("noise.parquet").write_bytes(bytes(range(256)) * 9)
        Path("noise.csv").write_bytes(bytes(range(256)) * 9)
        Path("it's %s [x]{0}.csv").write_bytes(Path("rows.csv").read_bytes())
        Path("folder").mkdir(exist_ok=True)
        if not Path("pipe.csv").exists():
            os.mkfifo("pipe.csv")
        counts = vf.count("rows.parquet", LABEL, ["site", "user", "n"], folds=3)
        counts.save("counts")
        vf.fit(counts, 9, aim="information").save("book")
        self.kept = {path.name for path in Path().iterdir()}

    def __call__(self, data: bytes) -> str:
        """Try one input."""
        choices = Choices(data)
        words = list(choices.of(self.bases))
        for _ in range(choices.number(6)):
            place, what = choices.number(len(words) + 1), choices.number(5)
            known = self.options.get(words[0] if words else "", ["--json"])
            if what == 0:
                words[place : place + 1] = [choices.word()]
            elif what == 1:
                words[place:place] = [choices.of(known), choices.word()]
            elif what == 2:
                words[place:place] = [choices.of(known)]
            elif what == 3:
                del words[place : place + 1]
            else:
                words[place : place + 1] = [f"{choices.of(known)}={choices.word()}"]
        return self.run([fit_for_a_process(word) for word in words])

    def run(self, words: list[str]) -> str:
        """Run a command, and remove what it leaves."""
        try:
            code, *_ = command(words)
        finally:
            self._tidy()
        return REFUSED if code == 2 else DONE

    def _tidy(self) -> None:
        os.chdir(self.home)
        for path in self.home.iterdir():
            if path.name not in self.kept:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


BASES = [
    "count rows.parquet --label y -o new",
    "count rows.csv --label y --features site,n --folds 3 -o new --json",
    "count criteo.txt --preset criteo -o new",
    "count rows.jsonl --label y --weight w --positive 1 -o new",
    "merge counts -o new",
    "fit rows.parquet --label y --budget 9 -o new",
    "fit counts --budget 5 --aim information --method greedy --allocation uniform -o new",
    "fit rows.csv --label y --budget auto --smoothing 3 --min-count 2 -o new --train-out new.csv",
    "fit counts --budget 5 --aim information --method stochastic --epsilon 0.2 --seed 3 -o new",
    "transform book rows.parquet -o new.parquet",
    "transform book rows.csv -o new.tsv.gz --only-ids --offset-ids",
    "transform book rows.parquet --counts counts -o folder/",
    "evaluate book rows.parquet --label y --fail-below 0.01",
    "evaluate book rows.csv --json",
    "compare counts --budgets 3,9 --methods exact,frequency",
    "compare rows.parquet --label y --budgets 3 --methods exact,threshold --shards 2 --json",
    "inspect book",
    "inspect book --feature site --value s1",
    "inspect book --feature n --id 0 --limit 3 --json",
    "inspect book --feature user --missing",
    "report book -o new.html --steps 3",
    "demo --nothing",
    "--help",
]


def fit_for_a_process(word: str) -> str:
    """Return a word that a shell can hand over, and that leads nowhere outside of the folder to be written."""
    word = word.replace("\0", "")
    is_outside = word.startswith(("/", "~")) or ".." in word or "=/" in word or "=~" in word
    return (
        word.replace("/", "").replace("~", "").replace("..", ".")
        if is_outside and word not in ODD_WORDS
        else word
    )


class Parsers:
    """Bytes -> the texts that options are read from: memory, budgets, names, formats, paths, presets."""

    def __init__(self, folder: Path) -> None:
        os.chdir(folder)
        self.table = rows(4)
        texts = [
            "4GB",
            "200 MiB",
            "1e9",
            "160k",
            "1.5m",
            "10,000",
            "1,2,3",
            'a,"b,c"',
            "auto",
            "0.5",
            "x.csv.gz",
            "days/*.parquet",
            "criteo",
            "http://x/y.parquet",
            "~/rows.csv",
            "2020-01-01",
            "true",
            "-0",
        ]
        self.seeds = [bytes([i]) + text.encode() for i in range(len(self._doors(""))) for text in texts]

    def __call__(self, data: bytes) -> str:
        """Try one input."""
        choices = Choices(data)
        which = choices.number(len(self._doors("")))
        text = choices.word() if choices.number(8) == 7 else choices.rest().decode("utf-8", "surrogateescape")
        return refusals(self._doors(text)[which])

    def _doors(self, text: str) -> list[Callable[[], Any]]:
        from vocabfold.interfaces.cli import options
        from vocabfold.io.engines.duckdb import parse_memory
        from vocabfold.io.engines.kinds import KINDS, from_text
        from vocabfold.io.rows import files, writing

        def values() -> None:
            for kind in KINDS:
                with contextlib.suppress(ValueError):
                    from_text(kind, text)

        return [
            lambda: parse_memory(text),
            lambda: options.parse_budget(text),
            lambda: options.parse_budgets([text]),
            lambda: options.parse_smoothing(text),
            lambda: options.names([text]),
            lambda: in_shell(text),
            lambda: files.format_of([Path(text)]),
            lambda: files.find(text.replace("/", "").replace("**", "")),
            lambda: writing.format_of(writing.place(text)),
            lambda: places.check_place(text, headers.COUNTS, overwrite=False),
            lambda: vf.load(text),
            lambda: vf.load_counts(text),
            lambda: vf.count(self.table, LABEL, preset=text),
            lambda: vf.count(self.table, text),
            values,
        ]
