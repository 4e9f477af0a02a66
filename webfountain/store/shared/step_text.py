"""Compose the text of a step: key names, constants, the parts of `lua/parts/` that it uses, and its own file.

A line `-- Uses` in a step names the parts that it needs, in order. Defining all parts in each step took a fifth of the
time of a small step.
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Final

from webfountain.store.shared.layout import CONSTANTS, KEYS

__all__ = ["alone", "step_text"]

_FOLDER: Final = files("webfountain.store.shared") / "lua"
_USES: Final = re.compile(rb"^-- Uses +(.+)$", re.MULTILINE)


def alone(name: str) -> bytes:
    """Return the text of a script that uses keys of its own."""
    return (_FOLDER / f"{name}.lua").read_bytes()


def step_text(name: str, *, guard: bool) -> bytes:
    """Return the text of a step on a shard. With `guard` at its beginning, a server that was set back refuses the
    step."""
    step = alone(name)
    used = _USES.search(step)
    parts = ["base", *(used[1].decode().split() if used else ())]
    texts = [_head(), *((_FOLDER / "parts" / f"{part}.lua").read_bytes() for part in parts)]
    return b"\n".join([*texts, *([alone("guard")] if guard else []), step])


def _head() -> bytes:
    names = ", ".join(name.upper() for name in KEYS)
    constants = ", ".join(CONSTANTS), ", ".join(map(str, CONSTANTS.values()))
    return f"local {names} = unpack(KEYS)\nlocal {constants[0]} = {constants[1]}\n".encode()
