"""deploy/scrapyd.conf with the real scrapyd: a crawl is a job that is scheduled, listed and cancelled."""

from __future__ import annotations

import base64
import configparser
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

from webfountain.demo.process import DemoServer

CONF = Path(__file__).resolve().parents[2] / "deploy" / "scrapyd.conf"
SECRET = "of-this-test"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Scrapyd:
    """The HTTP interface of one running scrapyd."""

    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}"

    def ask(self, call: str, *, secret: str = SECRET, **form: str) -> dict:
        data = urllib.parse.urlencode(form).encode() if form else None
        call, _, query = call.partition("?")
        token = base64.b64encode(f"operator:{secret}".encode()).decode()
        request = urllib.request.Request(f"{self._base}/{call}.json?{query}", data, {"Authorization": f"Basic {token}"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)

    def wait_for(self, ready, *, seconds: float = 40.0):
        """Ask until `ready()` answers something true: another process works, there is no clock to advance."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := ready():
                return found
            time.sleep(0.1)
        raise AssertionError("scrapyd did not get there in time")


@contextmanager
def scrapyd_in(folder: Path):
    port = free_port()
    conf = configparser.ConfigParser()
    conf.read(CONF)
    conf["scrapyd"].update({"http_port": str(port), "password": SECRET, "poll_interval": "0.2"})
    with (folder / "scrapyd.conf").open("w") as file:
        conf.write(file)
    environment = os.environ | {"SCRAPY_SETTINGS_MODULE": "webfountain.settings"}
    command = [str(Path(sys.executable).with_name("scrapyd"))]
    with (folder / "scrapyd.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        daemon = Scrapyd(port)
        try:
            daemon.wait_for(lambda: _is_up(port))
            yield daemon
        finally:
            process.terminate()
            process.wait(timeout=30)


def _is_up(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_the_shipped_configuration_binds_to_loopback_and_asks_for_a_password():
    conf = configparser.ConfigParser()
    conf.read(CONF)
    assert conf["scrapyd"]["bind_address"] == "127.0.0.1"
    assert conf["scrapyd"]["username"]
    assert conf["settings"]["webfountain"] == "webfountain.settings"


def test_a_crawl_runs_as_a_scrapyd_job_and_a_cancelled_one_ends_in_order(tmp_path):
    with DemoServer(seed=1, sites=2, pages=30, period=0) as web, scrapyd_in(tmp_path) as daemon:
        seeds = ", ".join(f'"{url}"' for url in web.urls)
        policy = tmp_path / "job.toml"
        policy.write_text(
            f'[collection]\nname = "job"\nseeds = [{seeds}]\n[network]\nallow_private = true\n'
            '[politeness]\nmin_delay = "10ms"\ndelay_factor = 1\n'
        )
        assert daemon.ask("listspiders?project=webfountain")["spiders"] == ["fountain"]
        report = tmp_path / "report.json"
        job = daemon.ask(
            "schedule",
            project="webfountain",
            spider="fountain",
            collection=str(policy),
            setting=f"WEBFOUNTAIN_REPORT={report}",
        )["jobid"]
        jobs = "listjobs?project=webfountain"
        daemon.wait_for(lambda: daemon.ask(jobs)["running"])
        daemon.wait_for((tmp_path / ".webfountain").is_dir)
        daemon.wait_for(lambda: len(web.log()) > 30)
        daemon.ask("cancel", project="webfountain", job=job)
        daemon.wait_for(lambda: daemon.ask(jobs)["finished"])
        found = json.loads(report.read_text())
        assert found["finish_reason"] == "shutdown"
        assert found["new"] > 20


def test_a_wrong_password_is_turned_away(tmp_path):
    with scrapyd_in(tmp_path) as daemon, pytest.raises(urllib.error.HTTPError, match="401"):
        daemon.ask("daemonstatus", secret="guessed")
