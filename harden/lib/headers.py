"""Headers of saved folders that were changed, with a checksum that is right again."""

import contextlib
import hashlib
import json
import struct
from typing import Any


def checksummed(header: dict[str, Any], *, is_book: bool) -> bytes:
    """Return a header with its digest and sha256 as a writer would have them, if it still can."""
    header.pop("sha256", None)
    if is_book:
        with contextlib.suppress(Exception):
            header["digest"] = digest_of(header)
    text = json.dumps(header, indent=2)
    body = text.removesuffix("\n}").encode() + b",\n"
    return body + f'  "sha256": "{hashlib.sha256(body).hexdigest()}"\n}}\n'.encode()


def digest_of(header: dict[str, Any]) -> str:
    """Return the digest of a codebook, written again from docs/format.md alone."""
    lines = [f"vocabfold 1 {header['units_per_row']} {header['settings']['unseen']}"]
    for column in header["columns"]:
        shared = "".join(struct.pack(">i", id).hex() for id in column["shared"]) or "-"
        borders = "".join(struct.pack(">d", border).hex() for border in column["borders"]) or "-"
        strength = float("inf") if column["strength"] is None else column["strength"]
        prior = struct.pack(">dd", column["mean"], strength).hex()
        facts = f"{column['kind']} {column['size']} {column['other']} {shared} {borders} {prior}"
        lines.append(f"{facts} {column['rows_sha256']} {len(column['name'].encode())} {column['name']}")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
