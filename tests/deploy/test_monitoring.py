"""Alert rules and the dashboard name metrics that there are; promtool tries the rules where it is installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from tests.frontier.drive import Drive, collection_of
from webfountain.history.exposition import Figures, exposition
from webfountain.history.recorder import Recorder
from webfountain.metrics import HISTOGRAMS, STATS

MONITORING = Path(__file__).resolve().parents[2] / "deploy" / "monitoring"
RULES = (MONITORING / "rules.yaml").read_text()
PANELS = [panel for panel in json.loads((MONITORING / "dashboard.json").read_text())["panels"] if "targets" in panel]
NAME = re.compile(r"\bwebfountain_[a-z_]+")


@pytest.fixture(scope="module")
def exposed() -> set[str]:
    """The names in a scrape of a crawl that has counted everything once."""
    drive = Drive(collection_of(["http://a.example/"]), lambda *_: (200, {}, b"", 0.1))
    counts = {name.replace("*", "x"): 1.0 for name in STATS}
    counts |= {f"{name}/{bound:g}": 1.0 for name, bounds in HISTOGRAMS.items() for bound in (*bounds, float("inf"))}
    live = msgspec.structs.replace(
        Recorder(drive.frontier, drive.metrics, now=drive.clock.now).snapshot(), counts=counts, waits={"ready": 1}
    )
    figures = Figures("c", available=True, at=live.at, live=[live], freshness=1.0, failing=1, store_bytes=1)
    return named(exposition([figures], streams=1).decode())


def named(text: str) -> set[str]:
    return set(NAME.findall(text))


def test_every_rule_names_metrics_that_exist(exposed: set[str]) -> None:
    expressions = re.findall(r"expr: (?:>\n)?(.*?)\n        for:", RULES, re.DOTALL)
    assert len(expressions) == RULES.count("alert:") >= 7
    for expression in expressions:
        assert named(expression), expression
        assert named(expression) <= exposed, expression


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_every_panel_names_metrics_that_exist(panel: dict[str, object], exposed: set[str]) -> None:
    targets = panel["targets"]
    assert isinstance(targets, list)
    for target in targets:
        assert named(target["expr"])
        assert named(target["expr"]) <= exposed


def test_every_alert_is_tried_but_for_those_that_need_hours() -> None:
    tried = set(re.findall(r"alertname: (\w+)", (MONITORING / "rules.test.yaml").read_text()))
    alerts = set(re.findall(r"alert: (\w+)", RULES))
    assert alerts - tried == {"WebfountainLoopLags", "WebfountainDiskGrows"}


@pytest.mark.system
def test_promtool_finds_that_the_rules_fire() -> None:
    promtool = shutil.which("promtool")
    assert promtool is not None, "`make test-system` installs Debian's prometheus"
    subprocess.run([promtool, "check", "rules", str(MONITORING / "rules.yaml")], check=True)
    subprocess.run([promtool, "test", "rules", str(MONITORING / "rules.test.yaml")], check=True)
