"""What bytes are thrown at: each target turns them into input for one door, and uses what comes out.

A target returns whether the input was taken (`DONE`) or refused in one sentence (`REFUSED`); any other
exception, a message of several lines, an exit code beyond 2 or control characters on a terminal are raised.
Bytes are choices, too, so that a mutation of bytes is a mutation of a command line or of a saved folder.
"""

from harden.lib.fuzz.files import Parquet, Text
from harden.lib.fuzz.folders import Folders
from harden.lib.fuzz.words import Parsers, Words

TARGETS: dict[str, type] = {
    "command line": Words,
    "text files": Text,
    "Parquet files": Parquet,
    "saved folders, valid checksums": Folders,
    "words of options": Parsers,
}
