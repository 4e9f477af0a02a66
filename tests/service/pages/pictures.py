"""Pictures of the main pages for docs/browser.md, of a crawl of the generated web.

::

    python -m tests.service.pages.pictures [FOLDER]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

from tests.acceptance.crawls import policy
from tests.service.pages.browser import TIMEOUT_MS, browser
from tests.service.pages.test_in_chromium import started
from webfountain.lab.demo.process import DemoServer

CRAWL_S = 150.0
"""Time that the crawl runs before the pictures are taken, s."""
PICTURES = (
    ("overview", "", 1100, 820, "light"),
    ("changes", "/changes?verdict=changed", 1100, 620, "light"),
    ("site", "/site?site={site}", 1100, 820, "dark"),
    ("page", "/page?url={url}", 1100, 820, "light"),
    ("versions", "/compare?url={changed}&view=side", 1100, 720, "light"),
    ("phone", "", 390, 780, "dark"),
)


def main(folder: Path) -> None:
    """Crawl, and take the pictures."""
    home = Path(tempfile.mkdtemp(prefix="webfountain-pictures-"))
    with browser() as chromium, DemoServer(seed=3, sites=6, pages=300, period=20, latency=0.002) as web:
        cycle = {"period": "20s", "capacity_pages_per_period": 300}
        file = policy(
            home, web.urls, changes={"diff": True}, cycle=cycle, politeness={"min_delay": "100ms"},
            repository={"keep": "all"},
        )  # fmt: skip
        line = ["crawl", str(file), f"--store=rocksdb://{home}/docs", "--serve=127.0.0.1:0", "--max-seconds=3600"]
        with started(*line, errors=home / "errors") as login:
            time.sleep(CRAWL_S)
            here, cookies = login.split("/login")[0] + "/collections/docs", None
            for name, path, width, height, scheme in PICTURES:
                context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
                context.set_default_timeout(TIMEOUT_MS)
                page = context.new_page()
                if cookies is None:
                    page.goto(login)
                    cookies = context.cookies()
                context.add_cookies(cookies)
                site = web.urls[0].rstrip("/")
                page.goto(f"{here}/changes?verdict=changed")
                changed = page.locator(".change h2 a").first.inner_text()
                page.goto(here + path.format(site=quote(site), url=quote(web.urls[0]), changed=quote(changed)))
                page.screenshot(path=str(folder / f"browser-{name}.png"))
                context.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/pictures"))
