"""Links of a virtual crawl through URL caches."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.lab.simulate.test_orderings import drawn_graph
from webfountain.cli import main
from webfountain.errors import InputError
from webfountain.lab.simulate.cache_misses import POLICIES, between_ants, crawl_trace, simulate_urlcache

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    web = drawn_graph(4000)
    np.savez(tmp_path / "g.npz", indptr=web.indptr, indices=web.indices)
    return tmp_path / "g.npz"


def test_the_trace_is_the_links_in_the_order_of_the_crawl() -> None:
    web = drawn_graph(100)
    source, urls = crawl_trace(web, 7, "breadth-first")
    expected = [
        t for page in dict.fromkeys(source.tolist()) for t in web.indices[web.indptr[page] : web.indptr[page + 1]]
    ]
    assert urls.tolist() == expected
    assert source[0] == 7


def test_between_ants_only_what_leads_to_another_ant_is_asked() -> None:
    source, urls = crawl_trace(drawn_graph(4000), 7, "breadth-first")
    trace = between_ants(source, urls, 3)
    assert 0 < len(trace.urls) < len(urls)
    assert set(trace.ant.tolist()) <= {0, 1, 2}
    assert between_ants(source, urls, 1).urls.tolist() == []


@pytest.mark.parametrize("ants", [1, 3])
def test_the_bounds_hold(file: Path, ants: int, tmp_path: Path) -> None:
    """MIN below all but STATIC, INFINITE below all but that and distinct over requests, more room never more misses."""
    sizes = [2, 16, 128, 1024, 8192]
    found = simulate_urlcache(file, start=7, sizes=sizes, policies=["all"], ants=ants, plot=tmp_path)
    assert tuple(found["policies"]) == POLICIES
    rates = {name: list(each.values()) for name, each in found["policies"].items()}
    assert rates["infinite"] == [found["distinct"] / found["requests"]] * 5
    for name in ("lru", "clock", "random"):
        assert all(least <= rate for least, rate in zip(rates["min"], rates[name], strict=True)), name
    for name in ("min", "lru", "static"):
        assert rates[name] == sorted(rates[name], reverse=True)
    assert rates["min"][-1] == rates["lru"][-1] == rates["infinite"][0]
    assert (tmp_path / "urlcache.svg").exists()


def test_the_document_has_the_promised_keys(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "simulate",
        "urlcache",
        "--graph",
        str(file),
        "--start",
        "7",
        "--sizes",
        "8,64",
        "--policies",
        "min,lru",
    ]
    assert main([*arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document) == ["requests", "distinct", "policies"]
    assert [*document["policies"]] == ["min", "lru"]
    assert all(list(each) == ["8", "64"] for each in document["policies"].values())
    assert main(arguments) == 0
    assert "entries" in capsys.readouterr().out
    assert main([*arguments, "--sizes", "a"]) == 2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"start": -1}, "--start: -1"),
        ({"static_start": 4000}, "--static-start: 4000"),
        ({"ordering": "ideal"}, "--ordering: 'ideal'"),
        ({"sizes": [0]}, "--sizes: 0"),
        ({"sizes": []}, "--sizes: no size given"),
        ({"policies": ["best"]}, "--policies: 'best'"),
        ({"policies": []}, "--policies: none"),
        ({"ants": 0}, "--ants: 0"),
    ],
)
def test_a_wrong_argument_is_named(file: Path, wrong: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"start": 7, "sizes": [8], "policies": ["lru"], **wrong}
    with pytest.raises(InputError, match=message):
        simulate_urlcache(file, **arguments)


@pytest.mark.shared
def test_on_a_real_graph_lru_and_clock_are_within_five_per_cent(shared_data: Path) -> None:
    """Issue 10; the whole range of sizes is in bench_urlcache."""
    found = simulate_urlcache(
        shared_data / "graph" / "apache-sites.npz", start=20_679, sizes=[256, 4096], policies=["min", "lru", "clock"]
    )["policies"]
    for size in ("256", "4096"):
        assert found["clock"][size] == pytest.approx(found["lru"][size], rel=0.05)
        assert found["min"][size] <= min(found["lru"][size], found["clock"][size])
