"""The parent's side: a document reader that has suspicious bodies read by child processes, few of them.

Place in the walk: between the examiner and the formats. Reading blocks, so it belongs in a thread; `run` has some. One
thread is for large bodies, so that they are read one after the other and what all of them hold is bounded, and two are
for the others, which so never wait behind large ones.
"""

from __future__ import annotations

import asyncio
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

from webfountain.formats.document import Document, PlainReader, ReadError
from webfountain.formats.sitemap import SitemapFile, read_sitemap
from webfountain.sandbox.child import FRAME, Answer, Job

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO

    from webfountain.formats.content_type import ContentType
    from webfountain.formats.links import LinkExtractor

__all__ = ["CPU_S", "MEMORY_BYTES", "FencedReader"]

logger = logging.getLogger(__name__)
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
_ROOT: Final = Path(__file__).resolve().parents[2]


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

    def read(
        self, body: bytes, kind: ContentType, *, url: str | None = None, robots_header: str | None = None
    ) -> Document:
        """What a body says, in bounded time and memory; blocks for some seconds at worst."""
        found = self.read_at_once(body, kind, url=url, robots_header=robots_header)
        if found is not None:
            return found
        job = Job(
            (kind.kind, kind.charset),
            _memory_for(body),
            CPU_S,
            url,
            robots_header,
            nofollow=self._extractor.nofollow,
            robot=self._extractor.robot,
        )
        answer = self._ask(job, body)
        return answer.document or Document(error=answer.error or "parse-crash")

    def read_at_once(
        self, body: bytes, kind: ContentType, *, url: str | None = None, robots_header: str | None = None
    ) -> Document | None:
        """As `read`, where that is short whatever the body holds; else None."""
        return self._plain.read_at_once(body, kind, url=url, robots_header=robots_header)

    def read_sitemap(self, body: bytes) -> SitemapFile | ReadError:
        """As `formats.sitemap.read_sitemap`, in bounded time and memory; or why it could not be read."""
        if len(body) <= _SMALL_SITEMAP_BYTES and not body.startswith(b"\x1f\x8b"):
            return read_sitemap(body)
        answer = self._ask(Job(None, MEMORY_BYTES, CPU_S), body)
        return answer.sitemap or answer.error or "parse-crash"

    async def run(self, function: Callable[[], _T], *, size: int) -> _T:
        """Call `function`, which reads a body of about `size` bytes, in a thread kept for that."""
        threads = self._large if size > _LARGE_BYTES else self._others
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

    def _ask(self, job: Job, body: bytes) -> Answer:
        child: _Child | None = getattr(self._own, "child", None)
        if self._closed:
            return Answer(error="parse-crash")
        if child is None:
            try:
                child = _Child()
            except OSError as error:
                logger.warning("No process can be started to read a page: %s", error.strerror)
                return Answer(error="parse-crash")
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
        self._answers = select.poll()  # descriptors of a large crawl are too high for `select.select`
        self._answers.register(self._pipe(self._process.stdout), select.POLLIN)

    @staticmethod
    def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
        assert pipe is not None
        return pipe

    def ask(self, job: Job, body: bytes) -> Answer:
        """What the child answers; if it ends instead, why, and the answer is its last."""
        packed = msgspec.msgpack.encode(job)
        with self._asking:
            return self._asked(packed, body)

    def _asked(self, packed: bytes, body: bytes) -> Answer:
        try:
            self._write(FRAME.pack(len(packed), len(body)) + packed)
            self._write(body)
            size = struct.unpack("<I", self._read(4))[0]
            answer = msgspec.msgpack.decode(self._read(size), type=Answer)
        except (OSError, EOFError, TimeoutError) as error:
            return Answer(error=self._end(late=isinstance(error, TimeoutError)), last=True)
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
