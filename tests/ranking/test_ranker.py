"""The ranker: the log's graph is the crawl's graph, and its scores reach readers and the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from webfountain.cli import main
from webfountain.core.link_graph import LinkGraph
from webfountain.core.pagerank import pagerank
from webfountain.ranking import ranker
from webfountain.ranking.link_journal import NOFOLLOW, UNFOLLOWED
from webfountain.ranking.link_log import LinkLog, compact, fingerprint
from webfountain.ranking.ranker import publish_ranking, ranked_log
from webfountain.ranking.scores import EpochScores, last_replay
from webfountain.records import Link
from webfountain.urls import fingerprint as page_key

if TYPE_CHECKING:
    from pathlib import Path

SITE = "https://a.example"
LINKS = {0: [1, 2, 2], 1: [0, 3], 2: [0], 3: [], 4: [0, 5]}
"""Page 5 is known, never fetched; page 2 is linked to twice by page 0."""


def urls(pages: list[int]) -> list[str]:
    return [f"{SITE}/{page}" for page in pages]


def links(pages: list[int]) -> list[Link]:
    return [Link(url, SITE, page_key(url)) for url in urls(pages)]


def write_log(url: str) -> None:
    """Old rows in a shard, some of them again with other links, and newest rows in a segment.

    Each has two links that do not count, one of them to a page that no other link names.
    """
    log = LinkLog(url, writer="ant")
    for page in LINKS:
        log.append(urls([page])[0], SITE, at=1.0, links=links([4, 3]))
    log.flush()
    compact(url, shards=2)
    for page, targets in LINKS.items():
        flags = bytes(len(targets)) + bytes([NOFOLLOW, UNFOLLOWED])
        log.append(urls([page])[0], SITE, at=2.0, links=links([*targets, 4, 6]), flags=flags)
    log.flush()


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("block", [1, 4, 100])
def test_the_graph_of_the_log_is_that_of_the_newest_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, compacted: bool
) -> None:
    monkeypatch.setattr(ranker, "_TARGETS_A_BLOCK", block)
    write_log(str(tmp_path / "links"))
    if compacted:
        compact(str(tmp_path / "links"))
    log = ranked_log(str(tmp_path / "links"), tmp_path)
    assert log.fingerprints.tolist() == sorted(map(fingerprint, urls(list(range(6)))))
    place = {page: int(np.searchsorted(log.fingerprints, fingerprint(f"{SITE}/{page}"))) for page in range(6)}
    rows = {place[page]: [place[target] for target in set(targets)] for page, targets in LINKS.items()}
    indptr = np.concatenate([[0], np.cumsum([len(rows.get(page, [])) for page in range(6)])])
    truth = pagerank(LinkGraph.from_csr(indptr, np.array([t for page in range(6) for t in rows.get(page, [])])))
    assert log.graph.edges == 7
    np.testing.assert_allclose(pagerank(log.graph).scores, truth.scores, atol=1e-10)


@pytest.mark.parametrize(("bound", "small"), [("MOST_REPLAYED", 5), ("MOST_REPLAYED_LINKS", 8)])
def test_the_links_are_kept_for_a_replay_unless_pages_or_links_are_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, small: int
) -> None:
    """Five thousand pages that all link to each other would take gigabytes."""
    write_log(str(tmp_path / "links"))
    for most in (small - 1, small):
        monkeypatch.setattr(ranker, bound, most)
        (scratch := tmp_path / f"scratch-{most}").mkdir()
        pairs = ranked_log(str(tmp_path / "links"), scratch).pairs
        assert (None if pairs is None else pairs.shape) == (None if most < small else (8, 2))


def test_the_orders_are_replayed_in_the_order_of_fetches_each_time_the_crawl_has_grown_by_half(tmp_path: Path) -> None:
    losses = []
    for name, direction in (("forwards", 1), ("backwards", -1)):
        url, scores, begin = str(tmp_path / name), tmp_path / f"{name}-scores", 0
        log, found = LinkLog(url, writer="ant"), []
        for crawled in (100, 200, 250, 300):
            for page in range(begin, crawled)[::direction]:
                log.append(urls([page])[0], SITE, at=float(page), links=links([2 * page + 1, 2 * page + 2, page // 3]))
            log.flush()
            publish_ranking(url, scores)
            found.append(last_replay(scores))
            begin = crawled
        assert [pages for pages, _ in found] == [0, 200, 200, 300]
        assert found[0][1] == ()
        assert found[1] == found[2]
        assert all(later > earlier > 0 for earlier, later in zip(found[2][1], found[3][1], strict=True))
        losses.append(found)
    assert losses[0] == losses[1]


def test_published_scores_are_relative_to_the_mean_and_name_pages_never_fetched(tmp_path: Path) -> None:
    write_log(str(tmp_path / "links"))
    assert (
        publish_ranking(
            str(tmp_path / "links"), tmp_path / "scores", trusted={f"{SITE}/4": 1.0, "https://b.example/": 1.0}
        )
        == 1
    )
    held = EpochScores(tmp_path / "scores")
    keys = np.array([fingerprint(each) for each in urls(list(range(6)))], dtype=np.uint64)
    assert held.names == ("backlinks", "crawled", "pagerank", "trust")
    assert held.links == 7
    assert held.lookup("crawled", keys).tolist() == [1.0] * 5 + [0.0]
    for name in ("backlinks", "pagerank", "trust"):
        assert held.lookup(name, keys).mean() == pytest.approx(1.0, rel=1e-6)
    assert held.lookup("pagerank", keys)[5] > 0
    assert not list(tmp_path.glob("ranking-*"))


@pytest.mark.parametrize("seed", range(4))
def test_the_ranks_of_sites_are_those_of_a_dense_reference(tmp_path: Path, seed: int) -> None:
    """Cho 2000: a site links to another when any of its pages does, once, by links that count."""
    rng = np.random.default_rng(seed)
    sites = [f"https://{name}.example" for name in "abcdefg"]
    pages = [(site, f"{site}/{page}") for site in sites[:5] for page in range(3)]  # of two sites none was fetched
    log = LinkLog(str(tmp_path / "links"), writer="ant")
    linked = np.zeros((7, 7))
    for site, url in pages:
        chosen = rng.integers(7, size=4)
        flags = rng.choice([0, 0, NOFOLLOW, UNFOLLOWED], size=4).astype(np.uint8)
        targets = [f"{sites[to]}/{page}" for to, page in zip(chosen, rng.integers(3, size=4), strict=True)]
        found = [Link(each, sites[to], page_key(each)) for each, to in zip(targets, chosen, strict=True)]
        log.append(url, site, at=1.0, links=found, flags=flags.tobytes())
        linked[sites.index(site), chosen[flags == 0]] = 1.0
    log.flush()
    publish_ranking(str(tmp_path / "links"), tmp_path / "scores")

    np.fill_diagonal(linked, 0.0)
    out = linked.sum(axis=1, keepdims=True)
    steps = np.where(out > 0.0, linked / np.maximum(out, 1.0), 1.0 / 7)
    truth = np.linalg.solve(np.eye(7) - 0.9 * steps.T, np.full(7, 0.1 / 7))
    keys = np.array([fingerprint(site) for site in sites], dtype=np.uint64)
    held = EpochScores(tmp_path / "scores" / "sites").lookup("pagerank", keys)
    np.testing.assert_allclose(held, 7 * truth, rtol=1e-5)


def test_the_command_prints_the_promised_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph, out = tmp_path / "g.npz", tmp_path / "scores.npy"
    np.savez(graph, indptr=np.array([0, 2, 3, 3]), indices=np.array([1, 2, 0]))
    assert main(["rank", "--graph", str(graph), "--json", "--out", str(out)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document) == ["seconds", "iterations", "nodes", "edges", "top"]
    assert (document["nodes"], document["edges"], len(document["top"])) == (3, 3, 3)
    assert [np.load(out)[page] for page, _ in document["top"]] == [score for _, score in document["top"]]
    assert main(["rank", "--graph", str(graph), "--method", "backlinks"]) == 0
    assert "3 pages, 3 links" in capsys.readouterr().out


def test_the_command_ranks_the_log_of_a_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_log(str(tmp_path / "links"))
    (tmp_path / "trusted").write_text(f"# ours\n{SITE}/4\n")
    arguments = ["rank", "--store", f"rocksdb://{tmp_path}", "--method", "trustrank"]
    assert main([*arguments, "--trusted", str(tmp_path / "trusted"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {page for page, _ in document["top"]} == set(urls(list(range(6))))
    assert dict(map(tuple, document["top"]))[f"{SITE}/4"] == max(score for _, score in document["top"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--graph", "none.npz"], "none.npz"),
        (["--graph", "g.npz", "--damping", "1"], "--damping: 1.0"),
        (["--graph", "g.npz", "--method", "trustrank"], "--trusted"),
        (["--graph", "g.npz", "--trusted", "t"], "--trusted"),
        (["--graph", "g.npz", "--method", "trustrank", "--trusted", "t"], "'9' is not a page number"),
        (["--graph", "g.npz", "--method", "backlinks", "--damping", ".5"], "--damping"),
        (["--graph", "t"], "t is not an npz"),
        (["--graph", "g.npz", "--out", "none/x.npy"], "--out: none/x.npy"),
        (["--store", "rocksdb://."], "ranking.every in the policy file switches it on"),
    ],
)
def test_a_wrong_argument_is_named(
    tmp_path: Path,
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez(tmp_path / "g.npz", indptr=np.array([0, 2, 3, 3]), indices=np.array([1, 2, 0]))
    (tmp_path / "t").write_text("1\n9\n")
    assert main(["rank", *arguments]) == 2
    assert message in capsys.readouterr().err
