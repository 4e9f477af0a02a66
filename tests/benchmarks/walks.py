"""Count the calls from one module of the package to another in a running frontier.

``python -m tests.benchmarks.walks`` prints, for an address that comes in, a page from its lease to its settling, and a
discovered link until the store has it, how many such calls there are and through how many modules they lead. One site,
two pages, nothing else going on. It runs on every commit that has `tests.frontier.drive`.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, NamedTuple

import webfountain
from tests.frontier.drive import Drive, collection_of

if TYPE_CHECKING:
    from types import FrameType

    from webfountain.records import Fetch

PACKAGE = os.path.dirname(webfountain.__file__) + os.sep
PAGE = b"<html><title>A page</title><body>words to be read <a href='/second'>second</a></body></html>"
Answer = tuple[int, dict[str, str], bytes, float]


class Step(NamedTuple):
    """A call from one module to another."""

    caller: str
    callee: str
    function: str


def answer(fetch: Fetch, at: float) -> Answer:
    """Return a home page with one link, and no robots.txt."""
    if fetch.url.endswith("robots.txt"):
        return 404, {}, b"", 0.1
    return 200, {"Content-Type": "text/html"}, PAGE, 0.1


def module_of(frame: FrameType | None) -> str | None:
    """Return the module of the package in which a frame runs."""
    name = None if frame is None else frame.f_code.co_filename
    return name.removeprefix(PACKAGE).removesuffix(".py") if name is not None and name.startswith(PACKAGE) else None


def steps_of(drive: Drive) -> list[Step]:
    """Return all steps of a crawl until both pages are settled."""
    steps: list[Step] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event != "call" or frame.f_code.co_name.startswith("<"):
            return
        callee, caller = module_of(frame), module_of(frame.f_back)
        if callee is not None and caller != callee:
            steps.append(Step(caller or "driver", callee, frame.f_code.co_name))

    sys.setprofile(note)
    try:
        drive.run(until=lambda: drive.outcomes["new"] == 2 and drive.store.census.statistics().pages["crawled"] == 2)
    finally:
        sys.setprofile(None)
    return steps


def summary(steps: list[Step]) -> dict[str, int]:
    """Return the number of calls between modules, and the number of modules."""
    own = [step for step in steps if step.caller != "driver" or step.callee.startswith("frontier")]
    return {"steps": len(own), "modules": len({step.callee for step in own})}


def between(steps: list[Step], begin: tuple[str, str], end: tuple[str, str]) -> list[Step]:
    """Return the steps from the first call of a function, given by its name and the beginning of its module's name, to
    the next call of another function.
    """

    def index_of(function: tuple[str, str], start: int) -> int:
        found = (n for n in range(start, len(steps)) if steps[n].callee.startswith(function[0]))
        return next(n for n in found if steps[n].function == function[1])

    first = index_of(begin, 0)
    return steps[first : index_of(end, first + 1) + 1]


def address(steps: list[Step]) -> list[Step]:
    """Return the steps of `Frontier.resolved`, until the driver calls again."""
    first = next(n for n, step in enumerate(steps) if step.function == "resolved" and step.caller == "driver")
    end = next(n for n in range(first + 1, len(steps)) if steps[n].caller == "driver")
    return steps[first:end]


def main() -> None:
    """Print one JSON object."""
    steps = steps_of(Drive(collection_of(["https://a.example/"]), answer))
    page = between(steps, ("store/memory", "lease"), ("store/memory", "settle"))
    link = between(steps, ("frontier/", "examine"), ("store/memory", "discover"))
    found = {
        "address": summary(address(steps)),
        "page, lease to settle": summary(page),
        "link, its page examined to discovered": summary(link),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
