"""The ranker runs in a process of its own, with the lowest priority.

``python -m webfountain.ranking.ranker_process FILE`` reads a `Job`, ranks the link log and publishes an epoch. At most
one ranker runs for each folder of scores. If the ranker is killed, the log stays readable and the crawl keeps using the
last scores.
"""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Final, Protocol

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
FEWEST_SEGMENTS: Final = 16
"""If the log has at least this number of segments, the process compacts it before a ranking."""


class Job(msgspec.Struct, frozen=True):
    """What the ranker process must do: rank the log at `links`, and publish the scores in the folder `scores`.

    `trusted` maps URLs to their trust, 0 to 1. If another process has published scores after the time `newer_than`, the
    job does nothing.
    """

    links: str
    scores: str
    at: float
    trusted: dict[str, float] = {}
    newer_than: float = 0.0


class Ranker(Protocol):
    """Runs ranking jobs, one at a time."""

    def start(self, job: Job) -> None:
        """Start a job without waiting for its end. No other job may be running."""
        ...

    def failed(self) -> str | None:
        """Return the error of the last job, or None if the job succeeded or still runs."""
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
    """Runs each ranking job in a new process."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._cost_s = LEAST_COST_S

    def start(self, job: Job) -> None:
        file = Path(job.scores) / "job"
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with private(file) as written:
            written.write(msgspec.msgpack.encode(job))
        path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH", "")]))
        # It gets its own session, because signals from the terminal are meant for the parent.
        self._process = subprocess.Popen(  # noqa: S603  (ourselves)
            [sys.executable, "-P", "-m", "webfountain.ranking.ranker_process", str(file)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,
        )
        weakref.finalize(self, _dispose, self._process)

    def is_busy(self) -> bool:
        process = self._process
        if process is None or process.returncode is not None:
            return False
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        if not ended:
            return True
        process.returncode = os.waitstatus_to_exitcode(status)
        self._cost_s = usage.ru_utime + usage.ru_stime
        if not process.returncode and process.stderr is not None:
            with process.stderr as said:
                for line in said.read().decode(errors="replace").splitlines():
                    logger.warning("%s", line)
        return False

    def cost_s(self) -> float:
        return self._cost_s

    def failed(self) -> str | None:
        process = self._process
        if (
            process is None
            or self.is_busy()
            or not process.returncode
            or process.stderr is None
            or process.stderr.closed
        ):
            return None
        with process.stderr as errors:
            lines = errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"it ended with {process.returncode}"

    def stop(self) -> None:
        if self._process is not None:
            _dispose(self._process)
            self._process = None


def _dispose(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stderr is not None:
        process.stderr.close()


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
    """Run the job that a file describes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_NICE)
    carry_out(msgspec.msgpack.decode(Path(sys.argv[1]).read_bytes(), type=Job))


if __name__ == "__main__":
    main()
