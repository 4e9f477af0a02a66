"""deploy/scrapyd.conf with the real scrapyd: a crawl is a job that is scheduled, listed and cancelled."""

from __future__ import annotations

import base64
import configparser
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from webfountain.lab.demo.process import DemoServer

if TYPE_CHECKING:
    import http.client
    from collections.abc import Callable, Iterator

CONF = Path(__file__).resolve().parents[2] / "deploy" / "scrapyd.conf"
SECRET = "of-this-test"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Scrapyd:
    """The HTTP interface of one running scrapyd."""

    def __init__(self, port: int) -> None:
        self.base = f"http://127.0.0.1:{port}"

    def ask(self, call: str, *, secret: str = SECRET, **form: str) -> dict[str, Any]:
        with self.open(call, secret=secret, headers=None, **form) as answer:
            found: dict[str, Any] = json.load(answer)
            return found

    def open(
        self, call: str, *, secret: str = SECRET, headers: dict[str, str] | None = None, **form: str
    ) -> http.client.HTTPResponse:
        data = urllib.parse.urlencode(form).encode() if form else None
        call, _, query = call.partition("?")
        token = base64.b64encode(f"operator:{secret}".encode()).decode()
        sent = {"Authorization": f"Basic {token}"} | (headers or {})
        request = urllib.request.Request(f"{self.base}/{call}.json?{query}", data, sent)
        answer: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=120)
        return answer

    def wait_for(self, ready: Callable[[], Any], *, seconds: float = 240.0) -> Any:
        """Ask until `ready()` answers something true: another process works, there is no clock to advance."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := ready():
                return found
            time.sleep(0.1)
        raise AssertionError("scrapyd did not get there in time")


def shipped(folder: Path, port: int, settings: dict[str, str] | None = None, **services: str) -> dict[str, str]:
    """The shipped configuration on a port of its own; the environment to start it in."""
    conf = configparser.ConfigParser()
    conf.read(CONF)
    conf["scrapyd"].update({"http_port": str(port), "poll_interval": "0.2"})
    conf["services"].update(services)
    conf["settings"].update(settings or {})
    with (folder / "scrapyd.conf").open("w") as file:
        conf.write(file)
    return dict(os.environ)


@contextmanager
def scrapyd_in(
    folder: Path, *, settings: dict[str, str] | None = None, more: dict[str, str] | None = None, **services: Any
) -> Iterator[Scrapyd]:
    port = free_port()
    environment = shipped(folder, port, settings, **services) | (more or {})
    environment |= {"SCRAPYD_USERNAME": "operator", "SCRAPYD_PASSWORD": SECRET}
    command = [str(Path(sys.executable).with_name("scrapyd"))]
    with (folder / "scrapyd.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        daemon = Scrapyd(port)
        try:
            daemon.wait_for(lambda: _is_up(port))
            yield daemon
        finally:
            process.terminate()
            process.wait(timeout=240)


def _is_up(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_it_does_not_start_without_credentials(tmp_path: Path) -> None:
    """An empty password was no authentication: any local user could run code."""
    environment = shipped(tmp_path, free_port())
    for given in ({}, {"SCRAPYD_USERNAME": "operator"}, {"SCRAPYD_PASSWORD": SECRET}):
        ended = subprocess.run(
            [Path(sys.executable).with_name("scrapyd")],
            cwd=tmp_path,
            env={**environment, **given},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert ended.returncode != 0
        assert "set SCRAPYD_USERNAME and SCRAPYD_PASSWORD in its environment" in ended.stdout + ended.stderr


def test_no_page_of_another_origin_and_no_uploaded_code_comes_in(tmp_path: Path) -> None:
    with scrapyd_in(tmp_path) as daemon:
        with daemon.open("daemonstatus") as answer:
            assert not [name for name, _ in answer.headers.items() if name.lower().startswith("access-control")]
        with daemon.open("daemonstatus", headers={"Origin": daemon.base}) as answer:
            assert answer.status == 200
        with pytest.raises(urllib.error.HTTPError, match="403"):
            daemon.open("schedule", headers={"Origin": "http://evil.example"}, project="webfountain", spider="fountain")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            daemon.open("addversion", project="webfountain", version="1")


def test_the_project_is_deployed_with_scrapyd_deploy(tmp_path: Path) -> None:
    """Its egg's entry point is what scrapyd asks for; the shipped scrapy.cfg names target and credentials."""
    project = tmp_path / "project"
    ignored = shutil.ignore_patterns(".*", "tests", "build", "*.egg-info", "__pycache__")
    shutil.copytree(CONF.parents[1], project, ignore=ignored)
    served = tmp_path / "served"
    served.mkdir()
    uploads: dict[str, Any] = {"addversion.json": "scrapyd.webservice.AddVersion"}
    with scrapyd_in(served, **uploads) as daemon:
        cfg = (project / "scrapy.cfg").read_text().replace("http://127.0.0.1:6800/", daemon.base + "/")
        (project / "scrapy.cfg").write_text(cfg)
        ended = subprocess.run(
            [Path(sys.executable).with_name("scrapyd-deploy"), "local"],
            cwd=project,
            env=os.environ | {"SCRAPYD_USERNAME": "operator", "SCRAPYD_PASSWORD": SECRET},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert '"status": "ok"' in ended.stdout, ended.stdout + ended.stderr
        assert daemon.ask("listspiders?project=webfountain")["spiders"] == ["fountain"]


def test_a_crawl_runs_as_a_scrapyd_job_and_a_cancelled_one_ends_in_order(tmp_path: Path) -> None:
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
        last = (tmp_path / "logs" / "webfountain" / "fountain" / f"{job}.log").read_text().splitlines()[-12:]
        counts = [line for line in last if f"{found['pages_fetched']} fetched (" in line]
        assert counts, "a job's log ends with its counts"
    with scrapyd_in(tmp_path) as daemon:
        assert [each["id"] for each in daemon.ask(jobs)["finished"]] == [job], "the list outlives a restart"


@pytest.mark.parametrize("inherited", [None, "webfountain.settings"])
def test_projects_beside_webfountain_have_their_own_spiders(tmp_path: Path, inherited: str | None) -> None:
    theirs = tmp_path / "code" / "theirs"
    theirs.mkdir(parents=True)
    (theirs / "__init__.py").write_text("")
    (theirs / "settings.py").write_text('SPIDER_MODULES = ["theirs.spiders"]\n')
    (theirs / "spiders.py").write_text("import scrapy\nclass One(scrapy.Spider):\n    name = 'one'\n")
    served = tmp_path / "served"
    served.mkdir()
    more: dict[str, str] = {"PYTHONPATH": str(theirs.parent)} | (
        {} if inherited is None else {"SCRAPY_SETTINGS_MODULE": inherited}
    )
    with scrapyd_in(served, settings={"theirs": "theirs.settings"}, more=more) as daemon:
        assert sorted(daemon.ask("listprojects")["projects"]) == ["theirs", "webfountain"]
        assert daemon.ask("listspiders?project=theirs")["spiders"] == ["one"]
        assert daemon.ask("listspiders?project=webfountain")["spiders"] == ["fountain"]
        job = daemon.ask("schedule", project="theirs", spider="one")["jobid"]
        daemon.wait_for(lambda: daemon.ask("listjobs?project=theirs")["finished"])
        log = (served / "logs" / "theirs" / "one" / f"{job}.log").read_text()
        assert "'finish_reason': 'finished'" in log


def test_a_wrong_password_is_turned_away(tmp_path: Path) -> None:
    with scrapyd_in(tmp_path) as daemon, pytest.raises(urllib.error.HTTPError, match="401"):
        daemon.ask("daemonstatus", secret="guessed")
