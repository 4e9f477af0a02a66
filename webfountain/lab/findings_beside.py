"""Side-by-side table of the findings of several instances, as `webfountain plan findings` prints it.

Edwards 2001 prints few constants of its instance, so each instance file is a calibration. `emt1` is the first one; some
findings do not hold with it. `emt2` reproduces both tables. The module `findings` solves and judges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webfountain.lab.findings import Findings

__all__ = ["beside_text"]


def beside_text(found: Mapping[str, Findings]) -> str:
    """Return the findings of several instances as lines of text, with one column per instance."""
    every = list(found.values())
    lines = ["table    strategy  figure           paper" + "".join(f"{name:>10}   error" for name in found)]
    for rows in zip(*(each["rows"] for each in every), strict=True):
        first = rows[0]
        name = f"{first['table']}  {first['strategy']} {first['version']}"
        ours = "".join(f" {row['ours']:9.2f} {100 * row['error']:+6.1f}%" for row in rows)
        lines.append(f"{name:18} {first['figure']:13}{first['paper']:9.2f}{ours}")
    lines.append("")
    lines.append("  ".join(f"{name:8}" for name in found) + "  finding")
    for findings in zip(*(each["findings"] for each in every), strict=True):
        marks = "  ".join("held    " if each["held"] else "NOT HELD" for each in findings)
        lines.append(f"{marks}  {findings[0]['finding']}: {' | '.join(each['measured'] for each in findings)}")
    for name, each in found.items():
        held = sum(one["held"] for one in each["findings"])
        lines.append(f"{name}: {held} of {len(each['findings'])} held. {' '.join(each['not_reproduced'])}")
    return "\n".join(lines)
