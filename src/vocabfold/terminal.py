"""What may be written to a terminal: names and values come from files, and could carry its control codes."""


def printable(text: str) -> str:
    """Return a text in one line, with its control characters as they are spelled in Python."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
