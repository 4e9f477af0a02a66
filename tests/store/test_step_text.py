"""A step names the parts that it uses, and no others are sent with it."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from webfountain.store.shared.layout import CONSTANTS, KEYS
from webfountain.store.shared.scripts import step_text

LUA = files("webfountain.store.shared") / "lua"
MADE = re.compile(r"^local (?:function )?([\w, ]+?)(?: =|\(|$)", re.MULTILINE)
STEPS = sorted(
    name.removesuffix(".lua")
    for name in (file.name for file in LUA.iterdir() if file.name.endswith(".lua"))
    if name not in {"guard.lua", "claim.lua", "drop.lua", "take.lua", "sooner.lua", "ring.lua", "life.lua"}
)


def code_of(text: str) -> str:
    return re.sub(r"--.*|\btable\.\w+", "", text)


def paragraphs() -> list[tuple[str, set[str], set[str]]]:
    """Of each paragraph of the parts: its part, the names that it makes, the words in it."""
    found = []
    for file in (LUA / "parts").iterdir():
        for paragraph in file.read_text(encoding="utf-8").split("\n\n"):
            code = code_of(paragraph)
            made = {name for names in MADE.findall(code) for name in names.split(", ")}
            found.append((file.name.removesuffix(".lua"), made, set(re.findall(r"\w+", code))))
    return found


def needed(step: str) -> set[str]:
    """The parts that hold what a step calls, and what that calls."""
    words, parts = set(re.findall(r"\w+", code_of(step))), set[str]()
    while True:
        more = [each for each in paragraphs() if each[1] & words and not each[2] <= words]
        parts |= {part for part, made, _ in paragraphs() if made & words}
        if not more:
            return parts
        for _, _, all_words in more:
            words |= all_words


@pytest.mark.parametrize("name", STEPS)
def test_a_step_names_each_part_that_it_needs_and_none_besides(name: str) -> None:
    step = (LUA / f"{name}.lua").read_text(encoding="utf-8")
    line = re.search(r"^-- Uses +(.+)$", step, re.MULTILINE)
    named = set(line[1].split()) if line else set()
    assert named | {"base"} == needed(step) | {"base"}


def test_what_python_and_the_scripts_must_agree_on_is_written_once() -> None:
    text = step_text("lease", guard=False).decode()
    assert text.startswith(f"local {', '.join(map(str.upper, KEYS))} = unpack(KEYS)\n")
    for file in [*LUA.iterdir(), *(LUA / "parts").iterdir()]:
        if file.name.endswith(".lua"):
            code = code_of(file.read_text(encoding="utf-8"))
            assert not [name for name in CONSTANTS if re.search(rf"\b{name}\b *=[^=]", code)], file.name
