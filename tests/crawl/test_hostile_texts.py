"""A text on which a pattern of the policy file would track back for hours stops no crawl."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.servers.town import Town

ROOT = Path(__file__).resolve().parents[2]
POLICY = r"""
[collection]
name = "texts"
seeds = {seeds}
[politeness]
min_delay = "10ms"
delay_factor = 1
[network]
allow_private = true
[policies.spam]
[[switch]]
when = {{ text = '(?i)(buy|order)\s+.*\s+online' }}
to = "spam"
"""
TEXT = "buy " * 60_000


class _Shops(Town):
    """Every page is 240 kB that begin like what the pattern asks for, at every word."""

    def page(self, path: str) -> tuple[str, bytes]:
        """Status and body."""
        status, body = super().page(path)
        return status, body + f"<p>{TEXT}".encode() if path != "/" and body else body


def test_sigterm_ends_a_crawl_with_a_pattern_that_hostile_texts_were_made_for(tmp_path: Path) -> None:
    with _Shops(["127.0.0.1"], ports=1, pages=1000) as town:
        (tmp_path / "texts.toml").write_text(POLICY.format(seeds=json.dumps(town.urls)))
        command = ["crawl", "texts.toml", "--store", f"rocksdb://{tmp_path}/store", "--report", "report.json"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        crawl = subprocess.Popen([sys.executable, "-m", "webfountain", *command], cwd=tmp_path, env=environment)
        try:
            until = time.monotonic() + 240
            while len(town.visits) < 10 and time.monotonic() < until:
                time.sleep(0.05)
            crawl.send_signal(signal.SIGTERM)
            assert crawl.wait(timeout=240) == 0
        finally:
            crawl.kill()
            crawl.wait()
    report = json.loads((tmp_path / "report.json").read_bytes())
    assert report["finish_reason"] == "shutdown"
    assert report["new"] > 2
