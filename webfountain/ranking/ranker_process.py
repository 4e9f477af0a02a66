"""The ranker runs in a process of its own, with the lowest priority.

``python -m webfountain.ranking.ranker_process`` reads the names of job files from standard input. For each file, the
ranker reads a `Job` from the file, ranks the link log and publishes an epoch. At most one ranker runs for each folder
of scores. If the ranker is killed, the log stays readable and the crawl keeps using the last scores.
"""

from __future__ import annotations

import fcntl
import io
import logging
import os
import select
import signal
import subprocess
import sys
import time
import weakref
from contextlib import redirect_stderr, suppress
from pathlib import Path
from typing import IO, Final, Protocol

import msgspec

from webfountain.private_files import private
from webfountain.ranking.scores import published_at

__all__ = ["LEAST_COST_S", "Job", "Ranker", "RankerProcess", "carry_out", "main"]

logger = logging.getLogger(__name__)

_ROOT: Final = Path(__file__).resolve().parents[2]
_NICE: Final = 19
_MOST_LINES: Final = 20
"""Maximum number of damaged files that the process reports, so that its output fits into a pipe."""

LEAST_COST_S: Final = 0.6
"""CPU time of a ranking of only a few pages, in seconds."""
KEPT_S: Final = 60.0
"""Time for which an idle ranker process waits for another job, in seconds."""
KEPT_BELOW_S: Final = 2.0
"""If a job takes more than this CPU time in seconds, the process ends after the job, to free its memory."""
FEWEST_SEGMENTS: Final = 16
"""If the log has at least this number of segments, the process compacts it before a ranking."""


class Job(msgspec.Struct, frozen=True):
    """What the ranker process must do: rank the log at `links`, and publish the scores in the folder `scores`.

    `trusted` maps URLs to their trust, 0 to 1. If another process has published scores after the time `newer_than`, the
    ranker process skips the job.
    """

    links: str
    scores: str
    at: float
    trusted: dict[str, float] = {}
    newer_than: float = 0.0


class JobEnd(msgspec.Struct, frozen=True):
    """The answer of the ranker process to a job: the job's CPU time in seconds, and lines for the log."""

    cost_s: float
    said: list[str]


class Ranker(Protocol):
    """Runs ranking jobs, one at a time."""

    def start(self, job: Job) -> None:
        """Start a job without waiting for its end. No other job may be running."""
        ...

    def failed(self) -> str | None:
        """Return the error of the last job, or None if the job succeeded or is still running."""
        ...

    def is_busy(self) -> bool:
        """Return whether a job is running."""
        ...

    def cost_s(self) -> float:
        """Return the CPU time of the last job, or an estimate before the first job, in seconds."""
        ...

    def stop(self) -> None:
        """Kill the running job."""
        ...


class RankerProcess:
    """Runs ranking jobs, if possible several in the same process.

    For a small ranking, starting a process would take three quarters of the CPU time. The process ends once it has been
    idle for `KEPT_S`, or after a job that took more CPU time than `KEPT_BELOW_S`.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._is_working = False
        self._idle_since = 0.0
        self._error: str | None = None
        self._cost_s = LEAST_COST_S

    def start(self, job: Job) -> None:
        file = Path(job.scores) / "job"
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with private(file) as written:
            written.write(msgspec.msgpack.encode(job))
        if self._process is not None and self._process.poll() is not None:
            self.stop()  # it was killed from outside
        if self._process is None:
            self._process = _begin()
            weakref.finalize(self, _dispose, self._process)
        self._error, self._is_working = None, True
        with suppress(BrokenPipeError):  # then `is_busy` finds that the process has ended
            _pipe(self._process.stdin).write(os.fsencode(file) + b"\n")

    def is_busy(self) -> bool:
        process = self._process
        if process is None:
            return False
        if not self._is_working:
            if time.monotonic() > self._idle_since + KEPT_S:
                self.stop()
            return False
        answers = select.poll()
        answers.register(_pipe(process.stdout), select.POLLIN)
        if not answers.poll(0):
            return True
        answer = _pipe(process.stdout).readline()
        if answer:
            self._end(msgspec.json.decode(answer, type=JobEnd))
        else:
            self._fail(process)
        return False

    def cost_s(self) -> float:
        return self._cost_s

    def failed(self) -> str | None:
        if self.is_busy():
            return None
        error, self._error = self._error, None
        return error

    def stop(self) -> None:
        self._is_working = False
        if self._process is not None:
            _dispose(self._process)
            self._process = None

    def _end(self, end: JobEnd) -> None:
        self._is_working, self._idle_since, self._cost_s = False, time.monotonic(), end.cost_s
        for line in end.said:
            logger.warning("%s", line)
        if end.cost_s > KEPT_BELOW_S:
            self.stop()

    def _fail(self, process: subprocess.Popen[bytes]) -> None:
        """Record that the process died during a job. The last line of the process's traceback becomes the error."""
        lines = _pipe(process.stderr).read().decode(errors="replace").strip().splitlines()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self._cost_s = usage.ru_utime + usage.ru_stime
        self._error = lines[-1] if lines else f"it ended with {process.returncode}"
        self.stop()


def _begin() -> subprocess.Popen[bytes]:
    path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH", "")]))
    # It gets its own session, because signals from the terminal are meant for the parent.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "webfountain.ranking.ranker_process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
    )


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def _dispose(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        _pipe(pipe).close()


def carry_out(job: Job) -> int | None:
    """Compact the log if it has many segments, rank its pages, publish the scores, and return their epoch.

    Return None if another process is ranking the log or has just ranked it.

    Raises RepositoryError if a file cannot be read or written.
    """
    from webfountain.ranking.link_files import DamagedFile  # noqa: PLC0415  (pyarrow)
    from webfountain.ranking.log_completeness import mend  # noqa: PLC0415

    folder = Path(job.scores)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with private(folder / "LOCK") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        if published_at(folder) > job.newer_than:
            return None
        try:
            return _ranked(job, folder)
        except DamagedFile:
            # The parent process logs this output.
            lines = mend(job.links, at=job.at)
            for line in lines[:_MOST_LINES]:
                print(f"{line}; it is set aside", file=sys.stderr)
            if len(lines) > _MOST_LINES:
                print(f"{len(lines) - _MOST_LINES} more files of the log are set aside", file=sys.stderr)
            return _ranked(job, folder)


def _ranked(job: Job, folder: Path) -> int:
    from webfountain.ranking.link_log import compact  # noqa: PLC0415
    from webfountain.ranking.ranker import publish_ranking  # noqa: PLC0415

    compact(job.links, fewest=FEWEST_SEGMENTS)
    return publish_ranking(job.links, folder, trusted=job.trusted, at=job.at)


def main() -> None:
    """Read names of job files from standard input, run each job, and answer each with a line of JSON."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_NICE)
    spent = 0.0
    for name in sys.stdin.buffer:
        job = msgspec.msgpack.decode(Path(os.fsdecode(name.rstrip(b"\n"))).read_bytes(), type=Job)
        with redirect_stderr(io.StringIO()) as said:
            carry_out(job)
        before, spent = spent, time.process_time()
        answer = msgspec.json.encode(JobEnd(spent - before, said.getvalue().splitlines()))
        sys.stdout.buffer.write(answer + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
