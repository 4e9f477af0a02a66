"""Certificates: checked as browsers do where `network.verify_tls` says so; else a page behind a bad one is a page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.crawls import ROOT, policy
from tests.servers.named import Answer, Authority, NamedWeb, certificate

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

NAMES = ["good.test", "expired.test", "own.test", "wrong.test", "stranger.test"]


def contexts(folder: Path) -> tuple[Authority, ssl.SSLContext]:
    """The authority that is trusted, and a context that has another fault for each name but the first."""
    trusted = Authority(folder)
    (folder / "strange").mkdir()
    stranger = Authority(folder / "strange")
    by_name = {
        "good.test": certificate(folder, ["good.test"], authority=trusted),
        "expired.test": certificate(folder, ["expired.test"], authority=trusted, days=-1),
        "own.test": certificate(folder, ["own.test"], authority=None),
        "wrong.test": certificate(folder, ["right.test"], authority=trusted),
        "stranger.test": certificate(folder, ["stranger.test"], authority=stranger),
    }
    first = by_name["good.test"]

    def choose(connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: ssl.SSLContext) -> None:
        connection.context = by_name.get(name or "", first)

    first.sni_callback = choose
    return trusted, first


def answer(url: str) -> Answer:
    return (404, {}, b"") if url.endswith("/robots.txt") else (200, {}, f"<p>{url}".encode())


@pytest.mark.parametrize("verify", [True, False])
def test_a_site_whose_certificate_fails_is_an_error_only_where_certificates_are_checked(
    tmp_path: Path, *, verify: bool
) -> None:
    authority, context = contexts(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SSL_CERT_FILE": str(authority.file)}

    def command(*arguments: str) -> str:
        line = [sys.executable, "-m", "tests.servers.named", json.dumps(NAMES), *arguments]
        done = subprocess.run(
            line, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240, check=False
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout

    with NamedWeb(answer, context) as web:
        seeds = [f"https://{name}:{web.https_port}/" for name in NAMES]
        agent = {"user_agent": "tests/1.0 (+http://example.org/bot)"}
        network = {"allow_private": True, "verify_tls": verify}
        file = policy(tmp_path, seeds, politeness=agent, network=network)
        printed = command("crawl", str(file), "--until-idle", "--max-seconds", "12", "--report", "report.json")
    report = json.loads((tmp_path / "report.json").read_text())
    failed = [json.loads(row) for row in command("pages", "--state", "failed", "--jsonl").splitlines()]
    if verify:
        assert report["new"] == 1
        assert report["unreachable"]["why"] == {"certificate": 4}
        assert {row["url"]: row["error"] for row in failed} == dict.fromkeys(seeds[1:], "certificate")
        assert "4 sites cannot be reached, 4 URLs wait" in printed
    else:
        assert report["new"] == len(NAMES)
        assert failed == []
