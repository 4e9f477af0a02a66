"""What scrapy-redis left on a server is taken over: its queue, and what its duplicate filter saw."""

from __future__ import annotations

import collections
import datetime
import decimal
import os
import pickle
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import FormRequest, Request, Spider
from scrapy_redis import picklecompat  # type: ignore[import-untyped]
from scrapy_redis.dupefilter import RFPDupeFilter  # type: ignore[import-untyped]

from tests.crawl.projects import Answer, Project, Site
from tests.servers.valkey import single
from webfountain.cli import main
from webfountain.crawl.requests import Packer
from webfountain.crawl.scrapy_redis import MAX_BYTES, PickleRefused, SeenFingerprints, link_of_entry, read_pickle

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import redis


class Theirs(Spider):
    name = "theirs"

    def seen(self, response: object) -> None:
        """A callback."""


SPIDER = Theirs()
SPIDERS = """
class Theirs(scrapy.Spider):
    name = "theirs"
    async def start(self):
        for n in range(6):
            yield scrapy.Request(f"{self._base}/{n}", self.seen, cb_kwargs={"by": "start"})
    def seen(self, response, by):
        yield {"path": response.url.rpartition("/")[2], "by": by}
"""


DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.binary(), inner),
    max_leaves=8,
)


@pytest.fixture
def server() -> Iterator[tuple[str, redis.Redis]]:
    with single() as found:
        yield found


def entry(request: Request) -> bytes:
    """As scrapy-redis writes it."""
    data: bytes = picklecompat.dumps(request.to_dict(spider=SPIDER))
    return data


def test_an_entry_is_the_request_that_it_was() -> None:
    request = FormRequest(
        "http://a.test/x?b=1",
        formdata={"q": "1"},
        callback=SPIDER.seen,
        meta={"deep": {"n": (1, 2)}},
        headers={"X-Own": "yes"},
        priority=3,
    )
    link = link_of_entry(entry(request))
    assert link.request is not None
    back = Packer(SPIDER).unpack(link.request)
    assert type(back) is FormRequest
    assert back.to_dict(spider=SPIDER) == request.to_dict(spider=SPIDER)


@pytest.mark.parametrize(
    "data",
    [
        pickle.dumps(1),
        pickle.dumps({"url": 7}),
        pickle.dumps({"url": "file:///etc/passwd"}),
        pickle.dumps({"url": "http://a.test/", "callback": "a.b"}),
        pickle.dumps({"url": "http://a.test/", "priority": "high"}),
        pickle.dumps({"url": "http://a.test/", "meta": {"x": Theirs}}),
        b"{broken json",
    ],
)
def test_an_entry_that_is_not_a_request_is_reported(data: bytes) -> None:
    with pytest.raises(PickleRefused):
        link_of_entry(data)


@given(st.sampled_from(["GET", "POST"]), st.text("abc&=?/é", max_size=8), st.binary(max_size=8))
def test_what_the_duplicate_filter_saw_is_known_and_nothing_else(method: str, path: str, body: bytes) -> None:
    request = Request(f"http://a.test/{path}", method=method, body=body)
    seen: Any = RFPDupeFilter(None, "key").request_fingerprint(request).encode()
    digests = SeenFingerprints.merged(None, [seen, b"no digest", b"00" * 20])
    assert SeenFingerprints(digests).holds(request)
    assert not SeenFingerprints(digests).holds(request.replace(url="http://b.test/"))
    assert SeenFingerprints.merged(digests, [seen]) == digests


def test_a_spider_goes_on_where_scrapy_redis_left_it(
    tmp_path: Path, server: tuple[str, redis.Redis], capsys: pytest.CaptureFixture[str]
) -> None:
    url, left = server
    with Site(lambda asked: Answer(f"<p>{asked.path}</p>")) as site:
        requests = [Request(f"{site.base}/{n}", SPIDER.seen, cb_kwargs={"by": "queue"}) for n in (1, 2)]
        for request in requests:
            left.zadd("theirs:requests", {entry(request): 0})
        left.zadd("theirs:requests", {pickle.dumps({"url": site.base, "meta": Theirs}): 0})
        filter_ = RFPDupeFilter(None, "key")
        for n in (1, 2, 3):
            left.sadd("theirs:dupefilter", filter_.request_fingerprint(Request(f"{site.base}/{n}")))
        assert main(["take-over", url, "theirs", "--project", "theirs"]) == 1
        printed = capsys.readouterr().out
        assert "2 requests and 3 fingerprints were moved to" in printed
        assert "1 stay in the queue: it names tests.crawl.test_scrapy_redis.Theirs" in printed
        assert left.zcard("theirs:requests") == 1
        assert main(["take-over", url, "theirs", "--project", "theirs"]) == 1
        assert "0 requests and 3 fingerprints" in capsys.readouterr().out
        project = Project(tmp_path, SPIDERS, settings=f'REDIS_URL = "{url}"\n')
        project.crawl("theirs", _base=site.base)
    assert sorted((item["path"], item["by"]) for item in project.items) == [
        ("0", "start"),
        ("1", "queue"),
        ("2", "queue"),
        ("4", "start"),
        ("5", "start"),
    ]


class Runs:
    """Makes a pickle that would run something."""

    def __init__(self, call: Any, *arguments: Any) -> None:
        self._reduced = (call, arguments)

    def __reduce__(self) -> Any:
        return self._reduced


@given(DATA, st.integers(2, pickle.HIGHEST_PROTOCOL))
def test_plain_data_comes_back_as_it_was(value: Any, protocol: int) -> None:
    try:
        found = read_pickle(pickle.dumps(value, protocol=protocol))
    except PickleRefused:
        assert protocol == 2, "which names a codec for bytes"
        return
    assert found == value


def test_times_numbers_and_containers_come_back() -> None:
    value = [
        {1, 2},
        frozenset([3]),
        collections.OrderedDict(a=1),
        datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
        datetime.timedelta(3),
        decimal.Decimal("1.5"),
    ]
    assert read_pickle(pickle.dumps(value, protocol=-1)) == value


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        (os.system, ("touch {}",)),
        (eval, ("open({!r}, 'w')",)),
        (exec, ("open({!r}, 'w')",)),
        (open, ("{}", "w")),
        (getattr, ("", "join")),
        (bytearray, (10**12,)),
        (print, ("x",)),
        (__import__, ("antigravity",)),
    ],
)
def test_what_would_run_anything_is_refused_and_runs_nothing(
    tmp_path: Any, call: Any, arguments: tuple[Any, ...]
) -> None:
    trap = tmp_path / "trap"
    given_ = [each.format(str(trap)) if isinstance(each, str) else each for each in arguments]
    with pytest.raises(PickleRefused, match="it names"):
        read_pickle(pickle.dumps({"url": Runs(call, *given_)}))
    assert not trap.exists()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80",
        b"no pickle",
        b"cos\nsystem\n(S'true'\ntR.",
        b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93.",
        b"(i__main__\nx\n.",
        b"Pid\n.",
        pickle.dumps(1)[:-1],
        b"\x80\x04" + b"\x95" + b"\xff" * 8,
        pickle.dumps(uuid.UUID(int=7)),
    ],
)
def test_a_pickle_that_is_not_plain_data_is_refused(data: bytes) -> None:
    with pytest.raises(PickleRefused):
        read_pickle(data)


def test_a_value_that_unfolds_without_end_is_refused() -> None:
    bomb: list[Any] = ["x"]
    for _ in range(40):
        bomb = [bomb, bomb]
    with pytest.raises(PickleRefused, match="contains more than 1,000,000 values"):
        read_pickle(pickle.dumps(bomb))
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(PickleRefused, match="contains more than 1,000,000 values"):
        read_pickle(pickle.dumps(loop))
    with pytest.raises(PickleRefused, match="bytes long"):
        read_pickle(b"x" * (MAX_BYTES + 1))
