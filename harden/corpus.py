"""Hostile texts, names and values: what `harden.hostile` sends through every door, and `harden.fuzz` starts from."""

import datetime
import math
from typing import Any

SQL = [
    "'; DROP TABLE table_0; --",
    '"; DROP TABLE table_0; --',
    "' OR '1'='1",
    "x' UNION SELECT * FROM duckdb_settings() --",
    "$$ || 1 || $$",
    "/* comment */",
    "-- comment",
    "E'\\x41'",
    "getvariable('positive')",
    "{{ 7 * 7 }} ${7 * 7} #{7 * 7} %(name)s %s {0}",
    "?",
    "$1",
]
HTML = [
    "<script>window.hacked = 1</script>",
    "</script><img src=x onerror='window.hacked = 2'>",
    "<!--",
    "]]>",
    "javascript:window.hacked=3",
    "&lt;b&gt; &amp;amp; &#0;",
    "\"quotes' and `ticks`",
    "\u2028line separators\u2029",
]
CONTROLS = [
    "bell \x07 backspace \x08 delete \x7f",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[2J",
    "\x9b31m C1 \x85 next line",
    "nul \0 inside",
    "\0",
    "\t",
    "\n",
    "\r",
    "\r\n",
    " ",
    "  leading and trailing  ",
    "tab\tinside",
    "line\nbreak",
    "carriage\rreturn",
    "both\r\nends",
    "\x1a\x1c\x1d\x1e\x1f separators",
    "\x0b\x0c",
]
UNICODE = [
    "caf\u00e9",
    "cafe\u0301",  # the same to the eye: composed and decomposed are different texts
    "\uac00",
    "\u1100\u1161",
    "\ufb01 \uff21 \u2460",
    "fi A 1",
    "\u202eevil\u202c \u2066isolate\u2069",
    "zero\u200bwidth",
    "zerowidth",
    "\ufeffmark",
    "mark",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea",
    "\U0010ffff \ufffe \ufdd0",
    "\U000e0001 tag",
    "\u0130 \u0131 \u00df \u1e9e \u017f",  # letters whose cases do not pair up
    "a" + "\u0301" * 50,
    "\ud7ff\ue000",
]
NUMBERS_AS_TEXT = [
    "0",
    "-0",
    "+7",
    "007",
    "7",
    "7.0",
    "1e5",
    "1E400",
    "0x1F",
    "1_000",
    "1,000",
    "NaN",
    "Infinity",
    "-inf",
    "9007199254740993",
    "9223372036854775808",
    "18446744073709551616",
    "2020-01-01",
    "20200101",
    "01/02/2020",
    "12:30",
    "true",
    "TRUE",
    "\u0663\u0664",
    "1e-400",
]
MISSING_AS_TEXT = ["NULL", "null", "nan", "None", "NA", "N/A", "\\N", "<NA>", "", "(missing)", "other"]
FILES = [
    "../../etc/passwd",
    "/dev/null",
    "C:\\Windows\\system32",
    "~root",
    "*.parquet",
    "file:///etc/passwd",
    "CON",
    ".",
    "a/b",
    "[x]{y}",
]
CSV = [
    "=1+1",
    '=HYPERLINK("http://x","y")',
    "@SUM(A1)",
    "+cmd|' /C calc'!A0",
    "a,b",
    'a"b',
    '"',
    '""',
    '"a"',
    "a;b|c",
    "a\\,b",
    "\\",
    '\\"',
    "# comment",
    "'",
    '"unclosed',
    "a\n\nb",
]
CASES = ["Site", "site", "SITE", "s\u0130te"]
INTERNAL = [
    "value",
    "neg",
    "pos",
    "fold",
    "id",
    "n",
    "p",
    "c0",
    "f0",
    "f1",
    "c1",
    "row",
    "units",
    "total",
    "table_0",
    "table_1",
    "label",
    "all_lines",
    "json",
    "filename",
    "file_row_number",
    "file_index",
    "rowid",
    "positive",
    "first",
    "last",
    "hash",
    "name",
    "columns",
    "__index_level_0__",
    "index",
    "select",
    "NULL",
    "n_bad",
    "all",
    "other",
    "features",
    "__fragment_index",
    "_corrupt_record",
    "hive=1",
    "mean",
    "count(*)",
]
LONG = ["long " + "x" * 10_000, "\u00fc" * 3_000]
MEGABYTE = "m" * 2**20
SURROGATES = ["lone \ud800", "\udfff lone", "\udcff escaped byte"]  # no UTF-8: never a value

TEXTS = list(
    dict.fromkeys(
        [
            *SQL,
            *HTML,
            *CONTROLS,
            *UNICODE,
            *NUMBERS_AS_TEXT,
            *MISSING_AS_TEXT,
            *FILES,
            *CSV,
            *CASES,
            *INTERNAL,
            *LONG,
        ]
    )
)

_FAR = [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(1970, 1, 1), datetime.date(1582, 10, 10)]
VALUES: dict[str, list[Any]] = {  # by the type of Arrow that holds them
    "string": TEXTS,
    "int64": [0, 1, -1, 2**53 + 1, 2**53, -(2**53) - 1, 2**63 - 1, -(2**63), 10**18, 7],
    "uint64": [0, 1, 2**53 + 1, 2**53, 2**63, 2**64 - 1, 7],
    "double": [0.0, 1.0, -1.5, 1e308, -1e308, 5e-324, math.inf, -math.inf, 0.1, 0.1 + 2**-56, 2.0**53, 1e22, 7.0],
    "bool": [True, False],
    "date32": _FAR,
    "timestamp[us]": [
        datetime.datetime(1, 1, 1),
        datetime.datetime(9999, 12, 31, 23, 59, 59, 999999),
        datetime.datetime(1970, 1, 1),
        datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
    ],
}

ODD_WORDS = [
    *("", "-", "--", "-o", "--json", "--help", "--version", "rows.parquet", "rows.csv", "rows.jsonl", "criteo.txt"),
    *("empty.csv", "none.parquet", "noise.parquet", "noise.csv", "folder", "folder/", "pipe.csv", "counts", "book"),
    *("counts/counts.json", "book/codebook.json", "it's %s [x]{0}.csv", "*.csv", "**", "[", "new", "new.csv"),
    *("new.parquet", "new.html", "new/", "new.svg", "/dev/null", "/dev/zero", "/dev/full", "/dev/stdin", "/proc/self/mem"),
    *("site", "user", "n", "w", "part", "y", "Y", "site,user", 'site,"', '"', "'", ",", "site,,n", "sité", "\ud800"),
    *("0", "1", "-1", "2", "1.5", "1e9", "1e400", "nan", "inf", "-inf", "99999999999999999999", "0x10", "1_0", "٣"),
    *("auto", "10k", "1.5m", "10,000", "4GB", "1B", "200MiB", "1e3GB", "criteo", "exact", "greedy", "hashing"),
    *("joint", "uniform", "information", "model", "own", "error", "other", "True", "None", "=", "==", "a=b"),
    *("x" * 300, "x" * 5000, "a\nb", "\x1b[31m", "\u202e", "\u200b", "%s%n", "{0}", "\\", "~nobody/x", "s3://b/k"),
    *("file:///x", "http://x/y.csv", "y,y", "counts,book", "--features=", "--label=y", "-b", "-b=3", "--no-json"),
    *("3,9", "5,5,5", "frequency,selection", "dynamic", "threshold", "bucketing", "divisive", "agglomerative"),
]

ODD_JSON: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 2**31 - 1, 2**31, 2**53, 2**63, 2**64, 10**30, 0.5, -0.5, 1.0, 1e308, 5e-324),
    *("", "x", "auto", "text", "integer", "float", "missing", "unsigned", "boolean", "date", "timestamp", "site"),
    *("\0", "\u202e", "../x", "own", "error", "other", "information", "model", "exact", "hashing", "frequency"),
    *([], [0], [[]], ["x"], [1, 0], [0.5, 0.5], {}, {"name": "x"}, [None], [1e308] * 3, list(range(9))),
]
