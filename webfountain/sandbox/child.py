"""The child process that parses bodies within limits of memory and CPU time."""

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

from webfountain.formats.document import Document, DocumentReader, ReadError
from webfountain.formats.links import LinkExtractor, LinkSource
from webfountain.formats.media_type import ContentType
from webfountain.formats.page_units import WHOLE_PAGE, ReadingRules
from webfountain.formats.robots import binding_part
from webfountain.formats.sitemap import SitemapFile, read_sitemap

if TYPE_CHECKING:
    from typing import BinaryIO

__all__ = ["FRAME", "LARGE_BYTES", "JobResult", "ReadJob", "main"]

FRAME: Final = struct.Struct("<II")
LARGE_BYTES: Final = 96_000_000
"""If the resident memory of a child exceeds this many bytes, the child ends after its job, and is replaced."""


class ReadJob(msgspec.Struct, frozen=True, array_like=True):
    """One body to parse: a page of type `kind`, a sitemap if `kind` is None, or a robots.txt if `is_robots`.

    The job may use `cpu_s` seconds of CPU time, and `memory_bytes` beyond the idle child's memory.
    """

    kind: tuple[str, str | None] | None
    memory_bytes: int
    cpu_s: float
    links: LinkSource | None = None
    nofollow: bool = True
    robot: str = ""
    is_robots: bool = False
    rules: ReadingRules = WHOLE_PAGE


class JobResult(msgspec.Struct, frozen=True, array_like=True):
    """The result of a job: a document, a sitemap, a robots.txt or an error. If `last` is True, the child ends after it
    has sent the result.
    """

    document: Document | None = None
    sitemap: SitemapFile | None = None
    robots: bytes | None = None
    error: ReadError | None = None
    last: bool = False
    died: bool = False
    """True if the child ended before it answered."""


def main() -> None:
    """Serve jobs until the input ends."""
    jobs, answers = _own_pipes()
    # If the machine runs out of memory, the kernel should kill this process and not the crawler.
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
        score.write("1000")
    decoder = msgspec.msgpack.Decoder(ReadJob)
    readers: dict[tuple[bool, str], DocumentReader] = {}
    idle_bytes = _address_space()
    while head := jobs.read(FRAME.size):
        sizes = FRAME.unpack(head)
        job, body = decoder.decode(jobs.read(sizes[0])), jobs.read(sizes[1])
        reader = readers.setdefault(
            (job.nofollow, job.robot), DocumentReader(LinkExtractor(nofollow=job.nofollow, robot=job.robot))
        )
        answer = _within_bounds(job, body, reader, idle_bytes)
        del body
        if _resident() > LARGE_BYTES or answer.error is not None:
            answer = msgspec.structs.replace(answer, last=True)
        _send(answers, msgspec.msgpack.encode(answer))
        if answer.last:
            return


def _own_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Return the pipes for jobs and answers."""
    # Standard input and output are replaced, so no parser can reach the pipes.
    jobs, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(nothing, standard)
    os.close(nothing)
    return jobs, answers


def _within_bounds(job: ReadJob, body: bytes, reader: DocumentReader, idle_bytes: int) -> JobResult:
    """Parse the body within the limits of the job. If a body takes too much CPU time, the process ends."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    soft = idle_bytes + len(body) + job.memory_bytes
    if hard == resource.RLIM_INFINITY or soft < hard:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    signal.setitimer(signal.ITIMER_PROF, job.cpu_s)  # SIGPROF ends the process, because it has no handler
    try:
        if job.is_robots:
            return JobResult(robots=binding_part(body, job.robot))
        if job.kind is None:
            # A sitemap is read in pieces, so the reader can stop in time and return what it has.
            latest = time.process_time() + job.cpu_s / 2
            return JobResult(sitemap=read_sitemap(body, go_on=lambda: time.process_time() < latest))
        kind = ContentType(*job.kind)
        document = reader.read(body, kind, job.links, job.rules)
        return JobResult(document=document)
    except MemoryError:
        return JobResult(error="parse-memory")
    except Exception:
        # A parser that runs out of memory may fail with any error, so the peak decides.
        starved = _peak() > idle_bytes + len(body) + job.memory_bytes // 2
        return JobResult(error="parse-memory" if starved else "parse-crash")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def _peak() -> int:
    """Return the largest address space of this process so far, in bytes."""
    try:
        with open("/proc/self/status", "rb") as status:
            return next(1024 * int(line.split()[1]) for line in status if line.startswith(b"VmPeak:"))
    except (OSError, StopIteration):
        return 0


def _address_space() -> int:
    try:
        with open("/proc/self/statm", "rb") as sizes:
            return int(sizes.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 1 << 40  # unknown on this system, so it limits nothing


def _resident() -> int:
    """Return the resident memory of this process in bytes; if it is unknown, its maximum so far."""
    try:
        with open("/proc/self/statm", "rb") as sizes:
            return int(sizes.read().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _send(answers: BinaryIO, packed: bytes) -> None:
    answers.write(struct.pack("<I", len(packed)) + packed)
    answers.flush()


if __name__ == "__main__":
    # Ctrl-C in a terminal is meant for the parent, which ends its children.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(BrokenPipeError):
        main()
    os._exit(0)
