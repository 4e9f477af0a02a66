"""The end of a change log is polled once, however many wait for it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from webfountain.service import tail
from webfountain.service.tail import ChangeTail

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_many_clients_that_begin_at_once_share_one_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "POLL_S", 0.01)
    asked = polling = most = 0

    async def end() -> str:
        nonlocal asked, polling, most
        asked, polling = asked + 1, polling + 1
        most = max(most, polling)
        await asyncio.sleep(0.001)
        polling -= 1
        return "new" if asked > 5 else "old"

    async def run() -> None:
        found = ChangeTail(end)
        assert all(await asyncio.gather(*(found.wait_beyond("old", 60.0) for _ in range(50))))

    asyncio.run(run())
    assert (asked, most) == (6, 1)


def test_an_error_reaches_who_waits_and_the_next_begins_anew() -> None:
    answers: Iterator[str | ValueError] = iter(["old", ValueError("busy"), "old", "new"])

    async def end() -> str:
        answer = next(answers)
        if isinstance(answer, ValueError):
            raise answer
        return answer

    async def run() -> None:
        found = ChangeTail(end)
        with pytest.raises(ValueError, match="busy"):
            await found.wait_beyond("old", 60.0)
        assert await found.wait_beyond("old", 60.0)

    asyncio.run(run())
