"""How tables are laid out for a terminal, and what an object lists of itself."""

import inspect
import re
from collections.abc import Collection, Iterator, Sequence


def aligned(heads: Sequence[str], rows: Sequence[Sequence[str]], texts: Collection[str]) -> Iterator[str]:
    """Yield the lines of a table: columns of texts to the left, all others, of numbers, to the right."""
    cells = [heads, *rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        line = (
            cell.ljust(width) if head in texts else cell.rjust(width)
            for cell, width, head in zip(row, widths, heads, strict=True)
        )
        yield "  ".join(line).rstrip()


def described(given: object) -> list[str]:
    """Return for `dir` what the docstring of an object's class describes, besides special and private names.

    What the steps call is not private, and no part of the interface. It need not be listed as such, which would
    be forgotten.
    """
    sections = re.split(r"^(?:Attributes|Methods)\n-+$", inspect.getdoc(type(given)) or "", flags=re.MULTILINE)
    lines = re.findall(r"^(\w+(?:, \w+)*)(?: : .*)?$", "".join(sections[1:]), re.MULTILINE)
    names = {name for line in lines for name in line.split(", ")}
    return [name for name in object.__dir__(given) if name.startswith("_") or name in names]
