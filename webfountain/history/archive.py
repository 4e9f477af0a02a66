"""The archive of samples: minutes for two days, hours for ninety days, days forever.

The archive is in the store's published values (`store.contract.Board`), so it survives restarts and is part of an
export. Samples are stored in *chunks*: the minutes of an hour, the hours of a day, or the days of a year. Chunks of
minutes and of hours reuse a fixed number of names, so their total size is bounded. A chunk with all days of a year
takes about 75 kB.

The archive writes once a minute. When an hour or a day ends, the archive condenses its samples into one, begins a new
chunk, and updates the archive's bounds. If the process is killed, an hour or a day may be condensed twice, without
harm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from webfountain.history.sample import HistorySample, rollup

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webfountain.store.contract import Board

__all__ = ["DAY_S", "HOUR_S", "MINUTE_S", "STEPS", "Archive", "Step"]

Step = Literal["minute", "hour", "day"]
MINUTE_S: Final = 60
HOUR_S: Final = 3600
DAY_S: Final = 86_400
STEPS: Final[dict[Step, int]] = {"minute": MINUTE_S, "hour": HOUR_S, "day": DAY_S}
_HOURS: Final = 50
"""Number of chunks of minutes: 48 for past hours, one for the current hour, and a spare one. Because of the spare
chunk, readers never use a chunk that is being replaced.
"""
_DAYS: Final = 92
"""Number of chunks of hourly samples. Each chunk is one day: ninety past days, the current day, and a spare."""
_YEAR: Final = 365
"""Number of days in a chunk of days."""
_HEAD: Final = "history/head"


class _Chunk(msgspec.Struct, frozen=True, array_like=True):
    """The stored samples of one hour, day or year. `number` identifies the span, because later spans reuse the chunk's
    name."""

    number: int
    samples: list[HistorySample]


class _Head(msgspec.Struct, frozen=True, array_like=True):
    """The bounds of the archive: the hour of its last sample, and the day of its first sample."""

    hour: int
    first_day: int


class Archive:
    """The archive of samples in one store. Only one process may write (`recorder`)."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def add(self, sample: HistorySample) -> None:
        """Add the sample of one minute to the archive.

        If the archive already has a sample of the same minute, the two samples are merged.

        A sample from before the archive's current hour is dropped, because the clock must have been set back.
        """
        hour, head = int(sample.at) // HOUR_S, self._head()
        if head is not None and hour < head.hour:
            return
        if head is not None and hour > head.hour:
            self._condense(head, hour)
        name = _minutes_name(hour)
        before = [each for each in self._samples(name, hour) if each.at == sample.at]
        self._replace(name, hour, [rollup([*before, sample], at=sample.at)] if before else [sample])
        if head is None or hour > head.hour:
            first_day = int(sample.at) // DAY_S if head is None else head.first_day
            self._board.put_value(_HEAD, msgspec.msgpack.encode(_Head(hour, first_day)))

    def read(self, step: Step, *, since: float, until: float) -> list[HistorySample]:
        """Return the samples that begin in a time span, in order. The current hour and day are included, although
        incomplete. The call reads one value of the store for each stored hour, day or year in the span.
        """
        head = self._head()
        if head is None:
            return []
        rows = {"minute": self._minutes, "hour": self._hours, "day": self._days}[step]
        return [sample for sample in rows(head, since, until) if since <= sample.at < until]

    def _minutes(self, head: _Head, since: float, until: float) -> Iterator[HistorySample]:
        for hour in _numbers(since, until, HOUR_S, first=head.hour - _HOURS + 2, last=head.hour):
            yield from self._samples(_minutes_name(hour), hour)

    def _hours(self, head: _Head, since: float, until: float) -> Iterator[HistorySample]:
        today = head.hour * HOUR_S // DAY_S
        for day in _numbers(since, until, DAY_S, first=today - _DAYS + 2, last=today):
            yield from self._hours_of(day)
        yield from self._condensed(self._samples(_minutes_name(head.hour), head.hour), head.hour * HOUR_S)

    def _days(self, head: _Head, since: float, until: float) -> Iterator[HistorySample]:
        today = head.hour * HOUR_S // DAY_S
        first = head.first_day // _YEAR
        for year in _numbers(since, until, _YEAR * DAY_S, first=first, last=today // _YEAR):
            yield from self._samples(_days_name(year), year)
        of_today = list(self._hours(head, today * DAY_S, (today + 1) * DAY_S))
        yield from self._condensed(of_today, today * DAY_S)

    def _hours_of(self, day: int) -> list[HistorySample]:
        return self._samples(_hours_name(day), day)

    @staticmethod
    def _condensed(samples: Iterable[HistorySample], at: float) -> list[HistorySample]:
        found = list(samples)
        return [rollup(found, at=at)] if found else []

    def _condense(self, head: _Head, hour: int) -> None:
        """Condense the hour that has ended into one sample, and likewise a day that has ended."""
        day = head.hour * HOUR_S // DAY_S
        ended = self._condensed(self._samples(_minutes_name(head.hour), head.hour), head.hour * HOUR_S)
        self._replace(_hours_name(day), day, ended)
        if hour * HOUR_S // DAY_S > day:
            self._replace(_days_name(day // _YEAR), day // _YEAR, self._condensed(self._hours_of(day), day * DAY_S))

    def _replace(self, name: str, number: int, samples: list[HistorySample]) -> None:
        """Add samples to a chunk. A sample replaces an existing one of the same time."""
        kept = {sample.at: sample for sample in self._samples(name, number)}
        self._write(name, number, kept | {sample.at: sample for sample in samples})

    def _write(self, name: str, number: int, samples: dict[float, HistorySample]) -> None:
        chunk = _Chunk(number, [samples[at] for at in sorted(samples)])
        self._board.put_value(name, msgspec.msgpack.encode(chunk))

    def _samples(self, name: str, number: int) -> list[HistorySample]:
        """Return the samples of a chunk, or [] if the chunk cannot be read or its name now belongs to another span."""
        value = self._board.value(name)
        if value is None:
            return []
        try:
            chunk = msgspec.msgpack.decode(value, type=_Chunk)
        except msgspec.DecodeError:
            return []
        return chunk.samples if chunk.number == number else []

    def _head(self) -> _Head | None:
        value = self._board.value(_HEAD)
        try:
            return None if value is None else msgspec.msgpack.decode(value, type=_Head)
        except msgspec.DecodeError:
            return None


def _numbers(since: float, until: float, span: int, *, first: int, last: int) -> range:
    """Return the numbers of the spans from `first` to `last` that overlap a time range."""
    begin = max(first, int(max(since, 0.0)) // span)
    end = last if until == float("inf") else min(last, int(max(until, 0.0)) // span)
    return range(begin, end + 1)


def _minutes_name(hour: int) -> str:
    return f"history/minute/{hour % _HOURS}"


def _hours_name(day: int) -> str:
    return f"history/hour/{day % _DAYS}"


def _days_name(year: int) -> str:
    return f"history/day/{year}"
