"""The common style of all figures, which are written as PNG and SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webfountain.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["COLOURS", "INK", "figure", "save"]

COLOURS: Final = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#666666")
"""Colours of Okabe and Ito, distinct in grey and for colour-blind readers."""

INK: Final = "#333333"


def figure(title: str, panels: int) -> tuple[Any, list[Any]]:
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415  an optional extra, 0.4 s
    except ImportError:
        raise InputError("figures need matplotlib, which is not installed: pip install matplotlib") from None
    drawn = Figure(figsize=(5.6 * panels, 4.2), dpi=150, layout="constrained")
    drawn.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold", color=INK)
    axes = list(drawn.subplots(1, panels, squeeze=False)[0])
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
        each.spines[["left", "bottom"]].set_color("#999999")
        each.tick_params(colors=INK, labelsize=9)
        each.grid(axis="y", color="#e5e5e5", linewidth=0.8)
        each.set_axisbelow(True)
    return drawn, axes


def save(drawn: Any, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG and SVG. If two figures are equal, their files are equal. Raise InputError when `folder` is
    not writable.
    """
    paths = [folder / f"{name}.{suffix}" for suffix in ("png", "svg")]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in paths:
            drawn.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    except OSError as error:
        raise InputError(f"--plots {folder}: cannot write there: {error.strerror}") from None
    return paths
