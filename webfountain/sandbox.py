"""Where bodies that may be hostile are read: processes that can be ended, whatever a body holds.

Life of a job: a thread that has a body to read takes its own child process, which is started when the first body needs
it and serves many. The child gets the body through a pipe and bounds itself before it looks at it: its address space,
by `setrlimit`, and its CPU time, by a timer whose signal ends it, also within the parser's C code. What it read comes
back as a `formats.document.Document` or a `SitemapFile`; if it ends instead, the job has an error word by the way it
ended, and the next job starts another child. A child ends by itself when its parent does, when a job has left it large,
and at once when the crawl is told to stop. One thread is for large bodies, so that they are read one after the other
and what all of them hold is bounded, and two are for the others, which so never wait behind large ones.

Place in the walk: between the examiner and the formats. Reading blocks, so it belongs in a thread; `run` has some. The
child is this file too: ``python -m webfountain.sandbox`` reads frames on standard input, the sizes of job and body as
two uint32, a `ReadJob` as msgpack, the body, and writes the size of the answer and a `JobResult` as msgpack. It imports
the formats and nothing else of the package. On systems that do not enforce RLIMIT_AS (macOS) the memory of a child is
bounded by its CPU time only.

Pages that were being examined when the process died: they go last, alone, and after three deaths no more. Place in
the walk: around the examination of every page of our own. A page that a process dies of comes back at the next start,
for its lease was not settled, and would be among the first pages to be asked for again. So what is under examination
stands in a small file while it is, in memory that the kernel keeps when the process is killed; what stands there at
the next start is a suspect. Of pages that were examined at the same time none is known to be the one, so only a death
with a single page under examination counts; and a suspect is examined while no other page is, so that its next death
does. A suspect that was examined well is one no more.

So children are for hostile bodies, suspects for what nobody foresaw, the machine's memory included.
"""

from __future__ import annotations

import contextlib
import logging
import mmap
import os
import resource
import select
import signal
import struct
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from webfountain.formats.content_type import ContentType
from webfountain.formats.document import Document, LinkExtractor, LinksOf, PlainReader, ReadError
from webfountain.formats.robots import MAX_ORDINARY_ROBOTS_BYTES, binding_part
from webfountain.formats.sitemap import SitemapFile, read_sitemap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import IO, BinaryIO

    from webfountain.records import Lease

__all__ = ["CPU_S", "CRASHES", "FRAME", "MEMORY_BYTES", "FencedReader", "JobResult", "ReadJob", "Suspects"]

logger = logging.getLogger(__name__)

CRASHES: Final = 3
"""Deaths, with a page alone under examination, after which it is not examined but has failed."""
_SLOTS: Final = 16
_SLOT_BYTES: Final = 4_096
_LENGTH: Final = struct.Struct("<I")


class Suspects:
    """What is examined now, and what was when a process died. Any thread may examine; one process at a time.

    Parameters
    ----------
    folder : where the two files lie, beside the store; None remembers nothing
    """

    def __init__(self, folder: Path | None) -> None:
        self._deaths: dict[str, int] = {}
        self._list = None if folder is None else folder / "suspects.json"
        self._slots: mmap.mmap | None = None
        self._free = list(range(_SLOTS))
        self._turn = threading.Condition()
        self._examined = 0
        self._alone = False
        self._waiting = 0
        self.found: Sequence[str] = ()
        """What was under examination when the last process died."""
        if folder is not None:
            self._open(folder / "examined", folder / "suspects.json")

    def __contains__(self, url: str) -> bool:
        return url in self._deaths

    def __len__(self) -> int:
        return len(self._deaths)

    def may_examine_at_once(self, url: str) -> bool:
        """Whether a page may be examined now without waiting for its turn."""
        return not (self._alone or self._waiting) and url not in self._deaths

    def has_crashed(self, url: str) -> bool:
        """Whether a page was the end of too many processes. True once: the next time that it is due it may try again,
        and the next death makes it true again."""
        if self._deaths.get(url, 0) < CRASHES:
            return False
        self._deaths[url] = CRASHES - 1
        self._write()
        return True

    @contextmanager
    def examining(self, url: str) -> Iterator[None]:
        """While a page is examined. Waits until it may be: a suspect until no other page is."""
        suspect = url in self._deaths
        with self._turn:
            self._waiting += suspect
            while self._alone or (suspect and self._examined):
                self._turn.wait()
            self._waiting -= suspect
            self._alone = suspect
            self._examined += 1
            slot = self._mark(url)
        try:
            yield
        finally:
            # Also after an exception, which is no death.
            with self._turn:
                self._clear(slot)
                self._examined -= 1
                if suspect:
                    self._alone = False
                self._turn.notify_all()
        if suspect and self._deaths.pop(url, None) is not None:
            self._write()

    def put_last(
        self, never: Sequence[Lease], recrawl: Sequence[Lease]
    ) -> tuple[list[Lease], list[Lease], list[Lease]]:
        """Leases of one site that may be asked now, of both queues, and those to give back.

        Suspects are given back, and so leased again, until they are all that is left of their site.
        """
        others = [[each for each in leases if each.record.url not in self._deaths] for leases in (never, recrawl)]
        if not self._deaths or not any(others):
            return list(never), list(recrawl), []
        return others[0], others[1], [each for each in (*never, *recrawl) if each.record.url in self._deaths]

    def close(self) -> None:
        """Nothing is examined any more."""
        if self._slots is not None:
            self._slots.close()
            self._slots = None

    # ------------------------------------------------------------ the files

    def _open(self, examined: Path, known: Path) -> None:
        """Take over what the last process left behind."""
        try:
            self._deaths = msgspec.json.decode(known.read_bytes(), type=dict[str, int])
        except (OSError, msgspec.DecodeError):  # absent, or torn by a power cut
            self._deaths = {}
        try:
            with open(os.open(examined, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
                file.truncate(_SLOTS * _SLOT_BYTES)
                self._slots = mmap.mmap(file.fileno(), _SLOTS * _SLOT_BYTES)
        except OSError:  # a disk that takes no more: nothing is remembered
            return
        self.found = [url for slot in range(_SLOTS) if (url := self._marked(slot))]
        for url in self.found:
            self._deaths[url] = self._deaths.get(url, 0) + (len(self.found) == 1)
        if self.found:
            self._write()
        for slot in range(_SLOTS):
            self._clear_slot(slot)

    def _mark(self, url: str) -> int | None:
        """Note a page as under examination: the length last, so that a torn note is none."""
        packed = url.encode()
        if self._slots is None or not self._free or len(packed) > _SLOT_BYTES - _LENGTH.size:
            return None
        slot = self._free.pop()
        at = slot * _SLOT_BYTES
        self._slots[at + _LENGTH.size : at + _LENGTH.size + len(packed)] = packed
        _LENGTH.pack_into(self._slots, at, len(packed))
        return slot

    def _clear(self, slot: int | None) -> None:
        if slot is not None:
            self._clear_slot(slot)
            self._free.append(slot)

    def _clear_slot(self, slot: int) -> None:
        if self._slots is not None:
            _LENGTH.pack_into(self._slots, slot * _SLOT_BYTES, 0)

    def _marked(self, slot: int) -> str | None:
        assert self._slots is not None
        at = slot * _SLOT_BYTES
        length = _LENGTH.unpack_from(self._slots, at)[0]
        if not 0 < length <= _SLOT_BYTES - _LENGTH.size:
            return None
        return self._slots[at + _LENGTH.size : at + _LENGTH.size + length].decode("utf-8", "replace")

    def _write(self) -> None:
        """The suspects as they are now, whole or not at all. A disk that takes no more is somebody else's to report."""
        assert self._list is not None
        draft = self._list.with_suffix(".tmp")
        try:
            draft.write_bytes(msgspec.json.encode(self._deaths))
            draft.replace(self._list)
        except OSError:
            return


FRAME: Final = struct.Struct("<II")
LARGE_BYTES: Final = 96_000_000
"""A child that a job has left with more than this resident makes room for a new one."""


class ReadJob(msgspec.Struct, frozen=True, array_like=True):
    """One body to read: a page of type `kind`; where that is None a sitemap, or with `is_robots` a robots.txt.

    `memory_bytes` may be taken beyond what the child takes idle, and `cpu_s` seconds of CPU time.
    """

    kind: tuple[str, str | None] | None
    memory_bytes: int
    cpu_s: float
    links: LinksOf | None = None
    nofollow: bool = True
    robot: str = ""
    is_robots: bool = False


class JobResult(msgspec.Struct, frozen=True, array_like=True):
    """What was read: one of the three, or why not. After `last` the child ends."""

    document: Document | None = None
    sitemap: SitemapFile | None = None
    robots: bytes | None = None
    error: ReadError | None = None
    last: bool = False


def main() -> None:
    """Serve until the input ends."""
    jobs, answers = sys.stdin.buffer, sys.stdout.buffer
    # If memory runs out on the machine, it shall not be the crawler that goes.
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
        score.write("1000")
    decoder = msgspec.msgpack.Decoder(ReadJob)
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


def _within_bounds(job: ReadJob, body: bytes, reader: PlainReader, idle_bytes: int) -> JobResult:
    """Read the body; the process ends within this call when that takes too much CPU time."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    soft = idle_bytes + len(body) + job.memory_bytes
    if hard == resource.RLIM_INFINITY or soft < hard:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    signal.setitimer(signal.ITIMER_PROF, job.cpu_s)  # SIGPROF, which nobody catches
    try:
        if job.is_robots:
            return JobResult(robots=binding_part(body, job.robot))
        if job.kind is None:
            # It reads piece by piece, so it can stop in time with what it has.
            latest = time.process_time() + job.cpu_s / 2
            return JobResult(sitemap=read_sitemap(body, go_on=lambda: time.process_time() < latest))
        kind = ContentType(*job.kind)
        document = reader.read(body, kind, job.links)
        return JobResult(document=document)
    except MemoryError:
        return JobResult(error="parse-memory")
    except Exception:
        # Of a parser that got no memory the error says nothing of the kind.
        starved = _peak() > idle_bytes + len(body) + job.memory_bytes // 2
        return JobResult(error="parse-memory" if starved else "parse-crash")
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


_T = TypeVar("_T")

CPU_S: Final = 2.0
"""CPU time that one body may take."""
MEMORY_BYTES: Final = 256_000_000
"""Memory that reading one body may take, itself not counted; small bodies may take less (`_memory_for`)."""
_MEMORY_AT_LEAST: Final = 96_000_000
_MEMORY_PER_BYTE: Final = 24
"""A tree of nothing but tags of three letters takes 40 bytes a byte, one of a page for readers 5."""
_WALL_S: Final = 60.0
"""A child that neither answers nor spends CPU time is ended too."""
_LARGE_BYTES: Final = 1_000_000
_SMALL_SITEMAP_BYTES: Final = 65_536
_THREADS: Final = 2
_ROOT: Final = Path(__file__).resolve().parents[1]


class FencedReader:
    """A `formats.document.DocumentReader` for bodies that strangers wrote. Any thread may read; `close` ends all.

    A body that cannot be read within bounds gives a document with an error word, never an exception.
    """

    def __init__(self, extractor: LinkExtractor) -> None:
        self._extractor = extractor
        self._plain = PlainReader(extractor)
        self._own = threading.local()
        self._children: set[_Child] = set()
        self._guard = threading.Lock()
        self._closed = False
        self._large = ThreadPoolExecutor(1, thread_name_prefix="webfountain-large")
        self._others = ThreadPoolExecutor(_THREADS, thread_name_prefix="webfountain-reader")

    def read(self, body: bytes, kind: ContentType, links: LinksOf | None = None) -> Document:
        """What a body says, in bounded time and memory; blocks for some seconds at worst."""
        found = self.read_at_once(body, kind, links)
        if found is not None:
            return found
        extractor = self._extractor
        told = (kind.kind, kind.charset)
        job = ReadJob(told, _memory_for(body), CPU_S, links, nofollow=extractor.nofollow, robot=extractor.robot)
        answer = self._ask(job, body)
        return answer.document or Document(error=answer.error or "parse-crash")

    def read_at_once(self, body: bytes, kind: ContentType, links: LinksOf | None = None) -> Document | None:
        """As `read`, where that is short whatever the body holds; else None."""
        return self._plain.read_at_once(body, kind, links)

    def read_sitemap(self, body: bytes) -> SitemapFile | ReadError:
        """As `formats.sitemap.read_sitemap`, in bounded time and memory; or why it could not be read."""
        if len(body) <= _SMALL_SITEMAP_BYTES and not body.startswith(b"\x1f\x8b"):
            return read_sitemap(body)
        answer = self._ask(ReadJob(None, MEMORY_BYTES, CPU_S), body)
        return answer.sitemap or answer.error or "parse-crash"

    def read_robots(self, body: bytes, robot: str) -> bytes:
        """As `formats.robots.binding_part`; a file that is short anyway is left as it is."""
        if len(body) <= MAX_ORDINARY_ROBOTS_BYTES:
            return body
        found = self._ask(ReadJob(None, MEMORY_BYTES, CPU_S, robot=robot, is_robots=True), body).robots
        return binding_part(body, robot) if found is None else found

    async def run(self, function: Callable[[], _T], *, size: int) -> _T:
        """Call `function`, which reads a body of about `size` bytes, in a thread kept for that."""
        threads = self._large if size > _LARGE_BYTES else self._others
        import asyncio  # noqa: PLC0415  a child needs none

        return await asyncio.get_running_loop().run_in_executor(threads, function)

    def close(self) -> None:
        """End all children now. Whatever is being read, or is asked for later, has the word parse-crash."""
        with self._guard:
            self._closed = True
            children = list(self._children)
        for child in children:
            child.kill()
        for child in children:
            child.clear()
        for threads in (self._large, self._others):
            threads.shutdown(wait=False)

    def _ask(self, job: ReadJob, body: bytes) -> JobResult:
        child: _Child | None = getattr(self._own, "child", None)
        if self._closed:
            return JobResult(error="parse-crash")
        if child is None:
            try:
                child = _Child()
            except OSError as error:
                logger.warning("No process can be started to read a page: %s", error.strerror)
                return JobResult(error="parse-crash")
            self._own.child = child
            with self._guard:
                self._children.add(child)
                if self._closed:
                    child.kill()
        answer = child.ask(job, body)
        if answer.last:
            self._own.child = None
            with self._guard:
                self._children.discard(child)
        return answer


class _Child:
    """One child process. Used by one thread; `kill` by any."""

    def __init__(self) -> None:
        path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH", "")]))
        # A session of its own: the terminal's signals are for the parent.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "webfountain.sandbox"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
            bufsize=0,
            start_new_session=True,
        )
        weakref.finalize(self, _dispose, self._process)
        self._asking = threading.Lock()
        self._answers = select.poll()  # descriptors of a large crawl are too high for `select.select`
        self._answers.register(self._pipe(self._process.stdout), select.POLLIN)

    @staticmethod
    def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
        assert pipe is not None
        return pipe

    def ask(self, job: ReadJob, body: bytes) -> JobResult:
        """What the child answers; if it ends instead, why, and the answer is its last."""
        packed = msgspec.msgpack.encode(job)
        with self._asking:
            return self._asked(packed, body)

    def _asked(self, packed: bytes, body: bytes) -> JobResult:
        try:
            self._write(FRAME.pack(len(packed), len(body)) + packed)
            self._write(body)
            size = struct.unpack("<I", self._read(4))[0]
            answer = msgspec.msgpack.decode(self._read(size), type=JobResult)
        except (OSError, EOFError, TimeoutError) as error:
            return JobResult(error=self._end(late=isinstance(error, TimeoutError)), last=True)
        if answer.last:
            self._end()
        return answer

    def kill(self) -> None:
        """End it now; whoever waits for its answer gets one."""
        self._process.kill()

    def clear(self) -> None:
        """After `kill`: leave nothing behind, when nobody asks any more."""
        with self._asking:
            self._end()

    def _end(self, *, late: bool = False) -> ReadError:
        """Wait for a process that is done, and tell how it ended."""
        if late:
            self.kill()
        status = _wait(self._process)
        if late or -status in (signal.SIGPROF, signal.SIGXCPU):
            return "parse-time"
        return "parse-crash"

    def _write(self, data: bytes) -> None:
        pipe, rest = self._pipe(self._process.stdin).fileno(), memoryview(data)
        while rest:
            rest = rest[os.write(pipe, rest) :]

    def _read(self, size: int) -> bytes:
        """Exactly `size` bytes. Raises EOFError when the child ended, TimeoutError when it does not speak."""
        pipe, pieces = self._pipe(self._process.stdout).fileno(), []
        while size:
            if not self._answers.poll(1000 * _WALL_S):
                raise TimeoutError
            piece = os.read(pipe, min(size, 1_048_576))
            if not piece:
                raise EOFError
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)


def _dispose(process: subprocess.Popen[bytes]) -> None:
    """End a child that nobody has a use for any more."""
    process.kill()
    _wait(process)


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Let go of a child that is done, or about to be; its status."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    return process.wait()


def _memory_for(body: bytes) -> int:
    return min(MEMORY_BYTES, _MEMORY_AT_LEAST + _MEMORY_PER_BYTE * len(body))


if __name__ == "__main__":
    # A terminal's Ctrl-C is for the parent, which ends its children when it is through.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(BrokenPipeError):
        main()
    os._exit(0)
