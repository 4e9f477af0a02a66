"""A real crawl of many sites through another download handler (`bench_scheduler` measures its hot path)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SITES = 1_000
SCRIPT = """
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.http import Response
from scrapy.utils.project import get_project_settings

class NoIo:
    lazy = True
    @classmethod
    def from_crawler(cls, crawler):
        return cls()
    async def download_request(self, request):
        if request.url.endswith("/robots.txt"):
            return Response(request.url, status=404)
        body = b"".join(b"<a href=%d>x</a>" % n for n in range(3))
        return Response(request.url, headers={"Content-Type": "text/html"}, body=body)
    async def close(self):
        pass

settings = get_project_settings()
settings.setdict({
    "DOWNLOAD_HANDLERS": {"http": NoIo}, "LOG_LEVEL": "WARNING",
    "WEBFOUNTAIN_STORE": "memory:", "WEBFOUNTAIN_REPOSITORY": "copies", "WEBFOUNTAIN_ACTIVE_SITES": 1000,
    "WEBFOUNTAIN_MAX_SECONDS": 70, "WEBFOUNTAIN_MAX_PAGES": 1_400, "WEBFOUNTAIN_REPORT": "report.json",
}, priority="cmdline")
process = AsyncCrawlerProcess(settings)
process.crawl("fountain", collection="c.toml")
process.start()
"""
POLICY = """
[collection]
name = "many"
seeds_file = "seeds.txt"
[politeness]
min_delay = "2s"
delay_factor = 0
[network]
allow_private = true
"""


def test_a_crawl_through_another_download_handler_lands_every_fetch(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(POLICY)
    (tmp_path / "seeds.txt").write_text("".join(f"http://10.0.{n // 250}.{n % 250 + 1}/\n" for n in range(SITES)))
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SCRAPY_SETTINGS_MODULE": "webfountain.settings"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["pages_fetched"] >= SITES
    assert report["failed"] == 0
