"""How all plots of the benchmarks look: legible in black and white, the same bytes for the same rows."""

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")
mpl.rcParams |= {"svg.hashsalt": "vocabfold", "svg.fonttype": "none", "font.family": "sans-serif"}

from matplotlib import pyplot as plt  # noqa: E402

# Lines differ without colour: marker, filled or not, dashes, grey.
STYLES: list[dict[str, Any]] = [
    {"color": shade, "marker": marker, "linestyle": dash, "markerfacecolor": shade if is_full else "white"}
    for shade, marker, dash, is_full in [
        ("black", "o", "-", True),
        ("black", "s", "--", False),
        ("dimgrey", "^", "-", True),
        ("dimgrey", "v", ":", False),
        ("black", "D", "-.", False),
        ("grey", "P", "--", True),
        ("grey", "X", ":", True),
        ("dimgrey", "<", "-.", False),
        ("grey", ">", "-", False),
        ("black", "*", ":", True),
    ]
]


def canvas(panels: int = 1, *, width: float = 7.0, height: float = 3.8) -> tuple[Any, list[Any]]:
    """Return a figure and its panels, side by side."""
    figure, axes = plt.subplots(1, panels, figsize=(width, height), layout="constrained", squeeze=False)
    for panel in axes[0]:
        panel.spines[["top", "right"]].set_visible(False)
    return figure, list(axes[0])


def save(figure: Any, folder: Path, name: str) -> None:
    """Write a figure as SVG and as PNG."""
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    figure.savefig(folder / f"{name}.png", dpi=150, metadata={"Software": None})
    plt.close(figure)
