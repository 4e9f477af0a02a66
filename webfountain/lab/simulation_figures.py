"""Figures of virtual crawlers: hot pages found (Cho 1998) and miss rates of URL caches (Broder 2003, Figures 2-5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from webfountain.lab.figures import COLOURS, figure, save

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy.typing as npt

__all__ = ["draw_hot_pages", "draw_miss_rates"]

_POINTS = 400


def draw_hot_pages(curves: Mapping[str, npt.NDArray[np.float64]], folder: Path, model: str) -> list[Path]:
    """Draw the share of hot pages found against the share of the web crawled, a curve per ordering; return the paths.

    Raises InputError when matplotlib is not installed or the folder cannot be written.
    """
    drawn, (axes,) = figure(f"Hot pages found, {model}", 1)
    for (name, curve), colour in zip(curves.items(), COLOURS * 2, strict=False):
        at = np.unique(np.linspace(0, len(curve) - 1, _POINTS).astype(np.int64))
        axes.plot((at + 1) / len(curve), curve[at], label=name, color=colour)
    axes.set_xlabel("share of the crawl")
    axes.set_ylabel("share of the hot pages")
    axes.legend(frameon=False)
    return save(drawn, folder, f"ordering-{model}")


def draw_miss_rates(rates: Mapping[str, Mapping[str, float]], folder: Path) -> list[Path]:
    """Draw the miss rate against the cache size and return the paths.

    A second panel shows the miss rates relative to MIN.

    Raises InputError when matplotlib is not installed or the folder cannot be written.
    """
    least = rates.get("min")
    drawn, panels = figure("Miss rates of URL caches", 2 if least else 1)
    for (name, by_size), colour in zip(rates.items(), COLOURS, strict=False):
        sizes = [int(size) for size in by_size]
        panels[0].plot(sizes, list(by_size.values()), label=name, color=colour, marker=".")
        if least:
            panels[1].plot(sizes, [by_size[size] / least[size] for size in by_size], color=colour, marker=".")
    panels[0].set_ylabel("miss rate")
    panels[-1].set_ylabel("miss rate divided by the miss rate of MIN" if least else "miss rate")
    for each in panels:
        each.set_xscale("log", base=2)
        each.set_xlabel("entries")
    panels[0].legend(frameon=False)
    return save(drawn, folder, "urlcache")
