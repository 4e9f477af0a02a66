"""The child process: reads one body after the other, each within bounds that it sets for itself.

Frames on standard input: the sizes of job and body as two uint32, a `Job` as msgpack, the body. On standard output: the
size of the answer, an `Answer` as msgpack. ``python -m webfountain.sandbox.child`` ends when its input does.
"""

from __future__ import annotations

import os
import resource
import signal
import struct
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.formats.content_type import ContentType
from webfountain.formats.document import Document, PlainReader, ReadError
from webfountain.formats.links import LinkExtractor
from webfountain.formats.sitemap import SitemapFile, read_sitemap

if TYPE_CHECKING:
    from typing import BinaryIO

__all__ = ["FRAME", "Answer", "Job"]

FRAME: Final = struct.Struct("<II")
LARGE_BYTES: Final = 96_000_000
"""A child that a job has left with more than this resident makes room for a new one."""


class Job(msgspec.Struct, frozen=True, array_like=True):
    """One body to read: a sitemap where `kind` is None, else a page of that type.

    `memory_bytes` may be taken beyond what the child takes idle, and `cpu_s` seconds of CPU time.
    """

    kind: tuple[str, str | None] | None
    memory_bytes: int
    cpu_s: float
    url: str | None = None
    robots_header: str | None = None
    nofollow: bool = True
    robot: str = ""


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """What was read: one of the two, or why not. After `last` the child ends."""

    document: Document | None = None
    sitemap: SitemapFile | None = None
    error: ReadError | None = None
    last: bool = False


def main() -> None:
    """Serve until the input ends."""
    jobs, answers = sys.stdin.buffer, sys.stdout.buffer
    # If memory runs out on the machine, it shall not be the crawler that goes.
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
        score.write("1000")
    decoder = msgspec.msgpack.Decoder(Job)
    readers: dict[tuple[bool, str], PlainReader] = {}
    idle_bytes = _address_space()
    while head := jobs.read(FRAME.size):
        sizes = FRAME.unpack(head)
        job, body = decoder.decode(jobs.read(sizes[0])), jobs.read(sizes[1])
        reader = readers.setdefault(
            (job.nofollow, job.robot), PlainReader(LinkExtractor(nofollow=job.nofollow, robot=job.robot))
        )
        answer = _within_bounds(job, body, reader, idle_bytes)
        del body
        if _resident() > LARGE_BYTES or answer.error is not None:
            answer = msgspec.structs.replace(answer, last=True)
        _send(answers, msgspec.msgpack.encode(answer))
        if answer.last:
            return


def _within_bounds(job: Job, body: bytes, reader: PlainReader, idle_bytes: int) -> Answer:
    """Read the body; the process ends within this call when that takes too much CPU time."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    soft = idle_bytes + len(body) + job.memory_bytes
    if hard == resource.RLIM_INFINITY or soft < hard:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    signal.setitimer(signal.ITIMER_PROF, job.cpu_s)  # SIGPROF, which nobody catches
    try:
        if job.kind is None:
            # It reads piece by piece, so it can stop in time with what it has.
            latest = time.process_time() + job.cpu_s / 2
            return Answer(sitemap=read_sitemap(body, go_on=lambda: time.process_time() < latest))
        kind = ContentType(*job.kind)
        return Answer(document=reader.read(body, kind, url=job.url, robots_header=job.robots_header))
    except MemoryError:
        return Answer(error="parse-memory")
    except Exception:
        # Of a parser that got no memory the error says nothing of the kind.
        starved = _peak() > idle_bytes + len(body) + job.memory_bytes // 2
        return Answer(error="parse-memory" if starved else "parse-crash")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def _peak() -> int:
    """The most bytes of address space that this process ever had."""
    try:
        with open("/proc/self/status", "rb") as status:
            return next(1024 * int(line.split()[1]) for line in status if line.startswith(b"VmPeak:"))
    except (OSError, StopIteration):
        return 0


def _address_space() -> int:
    """Bytes of address space that this process has now."""
    try:
        with open("/proc/self/statm", "rb") as sizes:
            return int(sizes.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 1 << 40  # not known here, so nothing is bounded by it


def _resident() -> int:
    """Bytes of memory that this process holds now, or where that is not told the most that it ever held."""
    try:
        with open("/proc/self/statm", "rb") as sizes:
            return int(sizes.read().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _send(answers: BinaryIO, packed: bytes) -> None:
    answers.write(struct.pack("<I", len(packed)) + packed)
    answers.flush()


if __name__ == "__main__":
    # A terminal's Ctrl-C is for the parent, which ends its children when it is through.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(BrokenPipeError):
        main()
    os._exit(0)
