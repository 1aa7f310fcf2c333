"""What may be written to a terminal: names and values come from files, and could carry its control codes."""

from collections.abc import Collection, Iterator, Sequence


def printable(text: str) -> str:
    """Return a text in one line, with its control characters as they are spelled in Python."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


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
