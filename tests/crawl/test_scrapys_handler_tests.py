"""Scrapy's own tests for HTTP download handlers, run over ours: `make soak`.

They come with the source distribution of the Scrapy that is installed, which is had from the package index at run
time, together with the plugin of pytest that they need. Those of its base classes that need mitmproxy or the Internet
are left out; nothing else is.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import textwrap
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DIFFERS: dict[str, str] = {
    "TestHttps.tls_log_message": "the line of handlers on the standard library's ssl, as Scrapy's aiohttp and httpx "
    "handlers log it: pyOpenSSL's, with issuer and subject, is of the Twisted ones",
    "TestHttpsProxy.handler_supports_tls_in_tls": "proxies are left to Scrapy's HTTP/1.1 handler, which does not",
}
"""Attributes by which a base class is told what a handler does otherwise, and why ours does. All else is the default,
which is what Scrapy's own HTTP/1.1 handler does."""
MODULE = """
    from tests.utils.bases import download_handlers_http as bases
    from webfountain.crawl.download_handler import FountainDownloadHandler

    PATH = "webfountain.crawl.download_handler.FountainDownloadHandler"

    class Ours:
        download_handler_cls = FountainDownloadHandler
        settings_dict = {"DOWNLOAD_HANDLERS": {"http": PATH, "https": PATH}}

    class TestHttp(Ours, bases.TestHttpBase): pass
    class TestHttps(Ours, bases.TestHttpsBase):
        tls_log_message = "SSL connection to 127.0.0.1 using protocol TLSv1.3, cipher"
    class TestSimpleHttps(Ours, bases.TestSimpleHttpsBase): pass
    class TestHttpsWrongHostname(Ours, bases.TestHttpsWrongHostnameBase): pass
    class TestHttpsInvalidDNSId(Ours, bases.TestHttpsInvalidDNSIdBase): pass
    class TestHttpsInvalidDNSPattern(Ours, bases.TestHttpsInvalidDNSPatternBase): pass
    class TestHttpsCustomCiphers(Ours, bases.TestHttpsCustomCiphersBase): pass
    class TestHttpsDefaultCiphers(Ours, bases.TestHttpsDefaultCiphersBase): pass
    class TestHttpsTLSVersion(Ours, bases.TestHttpsTLSVersionBase): pass
    class TestHttpWithCrawler(Ours, bases.TestHttpWithCrawlerBase): pass
    class TestHttpsWithCrawler(TestHttpWithCrawler): is_secure = True
    class TestHttpProxy(Ours, bases.TestHttpProxyBase): pass
    class TestHttpsProxy(Ours, bases.TestHttpProxyBase):
        is_secure = True
        handler_supports_tls_in_tls = False
"""
LEFT_OUT = {"TestMitmProxyBase", "TestRealWebsiteBase"}


def pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--quiet", *arguments], check=True)


@pytest.mark.soak
def test_our_handler_passes_scrapys_own_tests_for_handlers(tmp_path: Path) -> None:
    """Some 240 tests; two attributes tell what differs (`DIFFERS`)."""
    sources, plugins = tmp_path / "sources", tmp_path / "plugins"
    pip("download", "--no-deps", "--no-binary", ":all:", "--dest", str(sources), f"scrapy=={version('scrapy')}")
    pip("install", "--no-deps", "--target", str(plugins), "pytest-twisted", "greenlet", "decorator")
    [archive] = sources.iterdir()
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    scrapys = tmp_path / archive.name.removesuffix(".tar.gz")
    bases = (scrapys / "tests/utils/bases/download_handlers_http.py").read_text()
    assert set(re.findall(r"^class (Test\w+Base)\b", bases, re.M)) - LEFT_OUT == set(
        re.findall(r"bases\.(\w+)", MODULE)
    )
    (scrapys / "tests/test_webfountain_handler.py").write_text(textwrap.dedent(MODULE))
    # Scrapy pins a pytest in whose eyes its fixtures are in order.
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    command += ["-W", "ignore::pytest.PytestRemovedIn10Warning", "tests/test_webfountain_handler.py"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(plugins)])}
    done = subprocess.run(command, cwd=scrapys, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) > 200
