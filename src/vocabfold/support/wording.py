"""How tables are laid out for a terminal."""

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
