"""The parser of hostile bodies, in child processes with limits.

Each thread that parses bodies has its own child process, which parses many bodies. The child limits its address space
(`setrlimit`) and its CPU time (a timer that works even in C code). If the child ends without a result, the job gets an
error, and the next job starts another child. One thread parses large bodies, one at a time, and two threads parse all
other bodies.

``python -m webfountain.sandbox`` runs the child process. Each frame on standard input has the sizes of job and body as
two uint32, a `ReadJob` as msgpack, and the body. The child writes the size of the answer, and a `JobResult` as msgpack.
On macOS, which has no RLIMIT_AS, a child's memory is limited only by its CPU time.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import struct
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from webfountain.formats.document import Document, DocumentReader, ReadError
from webfountain.formats.page_units import WHOLE_PAGE, ReadingRules
from webfountain.formats.robots import MAX_ORDINARY_ROBOTS_BYTES, binding_part
from webfountain.formats.sitemap import SitemapFile, is_small_sitemap, read_sitemap
from webfountain.sandbox.child import FRAME, JobResult, ReadJob

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO

    from webfountain.formats.links import LinkExtractor, LinkSource
    from webfountain.formats.media_type import ContentType

__all__ = ["CPU_S", "MEMORY_BYTES", "FencedReader"]

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

CPU_S: Final = 2.0
"""Maximum CPU time for one body, in seconds."""
MEMORY_BYTES: Final = 256_000_000
"""Maximum memory for parsing a body, in bytes, not counting the body itself."""
_MEMORY_AT_LEAST: Final = 96_000_000
_MEMORY_PER_BYTE: Final = 24
"""Memory, in bytes, that a child process may use for each byte of a body. Parsing takes 5 bytes of memory per byte of
an ordinary page, and 40 per byte of a body with only three-letter tags."""
_WALL_S: Final = 60.0
"""A child is killed if it neither answers nor uses the CPU for this many seconds."""
_LARGE_BYTES: Final = 1_000_000
_SMALL_SITEMAP_BYTES: Final = 65_536
_THREADS: Final = 2
_TRIES: Final = 3
"""Number of children that must crash on the same body before the body gets an error."""
_ROOT: Final = Path(__file__).resolve().parents[2]


class FencedReader(DocumentReader):
    """A reader for untrusted bodies, which reads bodies that may parse slowly in child processes. Any thread may call
    the methods. For a body that exceeds the limits, the result is a document with an error, never an exception.
    """

    LANES: Final = {"large": 1, "others": _THREADS}
    """Number of threads for large bodies, and for all other bodies."""

    def __init__(self, extractor: LinkExtractor) -> None:
        super().__init__(extractor)
        self._own = threading.local()
        self._children: set[_Child] = set()
        self._guard = threading.Lock()
        self._closed = False
        self._large = ThreadPoolExecutor(1, thread_name_prefix="webfountain-large")
        self._others = ThreadPoolExecutor(_THREADS, thread_name_prefix="webfountain-reader")

    def read(
        self, body: bytes, kind: ContentType, links: LinkSource | None = None, rules: ReadingRules = WHOLE_PAGE
    ) -> Document:
        """Return the document of a body, within limits of time and memory. The call may block for some seconds."""
        found = self.read_at_once(body, kind, links, rules)
        if found is not None:
            return found
        extractor = self._extractor
        job = ReadJob(
            (kind.kind, kind.charset),
            min(MEMORY_BYTES, _MEMORY_AT_LEAST + _MEMORY_PER_BYTE * len(body)),
            CPU_S,
            links,
            nofollow=extractor.nofollow,
            robot=extractor.robot,
            rules=rules,
        )
        answer = self._ask(job, body)
        return answer.document or Document(error=answer.error or "parse-crash")

    def read_sitemap(self, body: bytes) -> SitemapFile | ReadError:
        """Return the same as `formats.sitemap.read_sitemap`, or the error."""
        if is_small_sitemap(body) or (len(body) <= _SMALL_SITEMAP_BYTES and not body.startswith(b"\x1f\x8b")):
            return read_sitemap(body)
        answer = self._ask(ReadJob(None, MEMORY_BYTES, CPU_S), body)
        return answer.sitemap or answer.error or "parse-crash"

    def read_robots(self, body: bytes, robot: str) -> bytes:
        """Return the part of a robots.txt that matters for a robot (`formats.robots.binding_part`). A short robots.txt
        is returned whole.
        """
        if len(body) <= MAX_ORDINARY_ROBOTS_BYTES:
            return body
        found = self._ask(ReadJob(None, MEMORY_BYTES, CPU_S, robot=robot, is_robots=True), body).robots
        return binding_part(body, robot) if found is None else found

    @staticmethod
    def lane_of(size: int) -> str:
        """Return the kind of thread that parses a body of about `size` bytes."""
        return "large" if size > _LARGE_BYTES else "others"

    async def run(self, function: Callable[[], _T], *, size: int) -> _T:
        """Call `function` in a thread for bodies of about `size` bytes."""
        threads = self._large if self.lane_of(size) == "large" else self._others
        import asyncio  # noqa: PLC0415  a child needs none

        return await asyncio.get_running_loop().run_in_executor(threads, function)

    def close(self) -> None:
        """Kill all children now. All running and later jobs end with the error parse-crash."""
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
        """Return the answer of a child. If the child crashed or was killed from outside, repeat the job with another
        child."""
        answer = self._ask_once(job, body)
        for _ in range(_TRIES - 1):
            if self._closed or answer.error != "parse-crash" or not answer.died:
                break
            answer = self._ask_once(job, body)
        return answer

    def _ask_once(self, job: ReadJob, body: bytes) -> JobResult:
        child: _Child | None = getattr(self._own, "child", None)
        if self._closed:
            return JobResult(error="parse-crash")
        if child is None:
            try:
                child = _Child()
            except OSError as error:
                logger.warning("Cannot start a process to read a page: %s", error.strerror)
                return JobResult(error="parse-crash", died=True)
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
    """One child process, used by one thread. Any thread may call `kill`."""

    def __init__(self) -> None:
        path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH", "")]))
        # A session of its own, because signals from the terminal are meant for the parent.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "webfountain.sandbox.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
            bufsize=0,
            start_new_session=True,
        )
        weakref.finalize(self, _dispose, self._process)
        self._asking = threading.Lock()
        self._answers = select.poll()  # file descriptors of a large crawl are too high for `select.select`
        self._answers.register(self._pipe(self._process.stdout), select.POLLIN)

    @staticmethod
    def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
        assert pipe is not None
        return pipe

    def ask(self, job: ReadJob, body: bytes) -> JobResult:
        """Return the child's answer, or the reason why the child ended."""
        packed = msgspec.msgpack.encode(job)
        with self._asking:
            return self._asked(packed, body)

    def _asked(self, packed: bytes, body: bytes) -> JobResult:
        try:
            self._write(FRAME.pack(len(packed), len(body)) + packed)
            self._write(body)
            size = struct.unpack("<I", self._read(4))[0]
            answer = msgspec.msgpack.decode(self._read(size), type=JobResult)
        except msgspec.DecodeError:  # a project's extractor wrote into the pipe, or gave another type than it says
            self.kill()
            return JobResult(error=self._end(), last=True)
        except (OSError, EOFError, TimeoutError) as error:
            return JobResult(error=self._end(late=isinstance(error, TimeoutError)), last=True, died=True)
        if answer.last:
            self._end()
        return answer

    def kill(self) -> None:
        """Kill the child now. A caller that waits for the child gets an error."""
        self._process.kill()

    def clear(self) -> None:
        """Clean up after `kill`, when no caller waits for this child."""
        with self._asking:
            self._end()

    def _end(self, *, late: bool = False) -> ReadError:
        """Wait until the child has ended, and return why it ended."""
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
        """Read exactly `size` bytes. Raise EOFError if the child ended, TimeoutError if it does not answer."""
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
    process.kill()
    _wait(process)


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Wait for a child that is about to end, and return its status."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    return process.wait()
