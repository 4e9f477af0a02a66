"""Requests become data and come back the same; what is no data is said to be none."""

from __future__ import annotations

import collections
import datetime
import functools
import pathlib
import re
import types
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import scrapy
from hypothesis import given
from hypothesis import strategies as st
from scrapy.utils.request import request_from_dict

from webfountain.crawl.requests import Callbacks, Packer, crawlable, importance_of, link_of
from webfountain.crawl.values import NameMissing, UnstorableValue, Values
from webfountain.store.lanes import class_of

if TYPE_CHECKING:
    from collections.abc import Callable

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.datetimes(timezones=st.none() | st.just(datetime.UTC))
    | st.dates()
)
HASHABLE = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text() | st.binary()
DATA = st.recursive(
    SCALARS | st.sets(HASHABLE) | st.frozensets(HASHABLE),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(HASHABLE, inner),
    max_leaves=8,
)


def of_no_spider(response: object, **_: object) -> None:
    """A callback that is nobody's method."""


class Theirs(scrapy.Spider):
    name = "theirs"

    def seen(self, response: object, **_: object) -> None:
        """A callback."""

    def failed(self, failure: object) -> None:
        """An errback."""


class TrappedRequest(Theirs):
    @property
    def trap(self) -> object:
        """Not to be looked at."""
        raise AssertionError("a property of the spider was read")


SPIDER = Theirs()
PACKER = Packer(SPIDER)


def again(request: scrapy.Request) -> scrapy.Request:
    return PACKER.unpack(PACKER.pack(request))


@given(st.dictionaries(st.text(), DATA, max_size=4), st.binary(), st.integers(-1000, 1000))
def test_meta_body_and_priority_come_back_the_same(meta: dict[str, Any], body: bytes, priority: int) -> None:
    request = scrapy.Request("http://a.test/", method="POST", body=body, meta=meta, priority=priority, cb_kwargs=meta)
    back = again(request)
    assert (back.meta, back.cb_kwargs, back.body, back.priority) == (meta, meta, body, priority)


def test_all_attributes_methods_and_the_class_come_back_the_same() -> None:
    request = scrapy.FormRequest(
        "http://a.test/x?y=1",
        formdata={"q": "1"},
        callback=SPIDER.seen,
        errback=SPIDER.failed,
        headers={"X-Two": ["1", "2"]},
        cookies=[{"name": "a", "value": "b"}],
        dont_filter=True,
        flags=["f"],
        encoding="latin-1",
    )
    back = again(request)
    assert type(back) is scrapy.FormRequest
    assert (back.callback, back.errback) == (SPIDER.seen, SPIDER.failed)
    assert back.to_dict(spider=SPIDER) == request.to_dict(spider=SPIDER)


def test_a_function_beside_the_spider_comes_back() -> None:
    back = again(scrapy.Request("http://a.test/", callback=of_no_spider, errback=partial(of_no_spider, more=1)))
    assert back.callback is of_no_spider
    assert isinstance(back.errback, partial)
    assert (back.errback.func, back.errback.keywords) == (of_no_spider, {"more": 1})


@pytest.mark.parametrize(
    "request_",
    [
        scrapy.Request("http://a.test/", callback=print),
        scrapy.Request("http://a.test/", callback=Theirs().seen),
        scrapy.Request("http://a.test/", meta={"thing": object()}),
        scrapy.Request("http://a.test/", meta={"deep": [{"thing": Theirs}]}),
        scrapy.Request("http://a.test/", callback=partial(print)),
    ],
)
def test_what_is_no_plain_data_is_refused(request_: scrapy.Request) -> None:
    with pytest.raises(UnstorableValue):
        PACKER.pack(request_)


ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=5)
"""With halves of surrogate pairs, as a JSON API may send them."""
ANY_SCALAR = (
    SCALARS
    | ANY_TEXT
    | st.integers()
    | st.floats()
    | st.complex_numbers(allow_nan=False)
    | st.decimals(allow_nan=False)
    | st.fractions()
    | st.uuids()
    | st.times()
    | st.timedeltas()
    | st.ip_addresses()
    | st.binary().map(bytearray)
    | st.sampled_from(
        [..., range(3, 40, 7), re.compile("a|b", re.IGNORECASE), re.compile(b"a"), pathlib.PurePosixPath("a")]
    )
)
ANY_KEY = st.recursive(
    HASHABLE | ANY_TEXT | st.floats(allow_nan=False) | st.dates() | st.decimals(allow_nan=False),
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=2),
    max_leaves=3,
)
OPAQUE = [object(), Theirs, of_no_spider, lambda: None, memoryview(b"x"), ValueError("x")]
ANYTHING = st.recursive(
    ANY_SCALAR | st.sampled_from(OPAQUE),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(ANY_KEY, inner, max_size=3)
        | st.dictionaries(ANY_TEXT, inner, max_size=3).map(collections.OrderedDict)
        | st.lists(inner, max_size=3).map(collections.deque)
    ),
    max_leaves=6,
)


def is_opaque(value: Any) -> bool:
    """Whether it holds something that is no data."""
    if isinstance(value, dict):
        return any(map(is_opaque, value.values()))
    if isinstance(value, list | tuple | collections.deque):
        return any(map(is_opaque, value))
    return any(value is each for each in OPAQUE)


def exact(value: Any) -> Any:
    """Return `value` in a form whose `repr` tells types apart, but not the order in which a set gives its members."""
    if isinstance(value, dict):
        return type(value), [(exact(key), exact(each)) for key, each in value.items()]
    if isinstance(value, list | tuple | collections.deque):
        return type(value), [exact(each) for each in value]
    if isinstance(value, set | frozenset):
        return type(value), sorted(repr(exact(each)) for each in value)
    return value


@given(
    st.dictionaries(ANY_TEXT, ANYTHING, max_size=3),
    st.dictionaries(ANY_TEXT, ANYTHING, max_size=2),
    st.dictionaries(ANY_TEXT, ANY_TEXT, max_size=2),
    st.lists(ANY_TEXT, max_size=2),
    st.integers(),
)
def test_whatever_a_request_holds_it_comes_back_the_same_or_is_said_to_be_no_data(
    meta: dict[str, Any], arguments: dict[str, Any], cookies: Any, flags: list[str], priority: int
) -> None:
    request = scrapy.Request(
        "http://a.test/", meta=meta, cb_kwargs=arguments, cookies=cookies, flags=flags, priority=priority
    )
    try:
        data = PACKER.pack(request)
    except UnstorableValue:
        assert is_opaque(meta) or is_opaque(arguments)
        return
    assert not is_opaque([meta, arguments])
    back = PACKER.unpack(data)
    assert repr(exact(back.to_dict(spider=SPIDER))) == repr(exact(request.to_dict(spider=SPIDER)))


def test_a_method_that_the_spider_lost_is_a_value_error() -> None:
    data = PACKER.pack(scrapy.Request("http://a.test/", callback=SPIDER.seen))
    with pytest.raises(ValueError, match="seen"):
        Packer(scrapy.Spider("other")).unpack(data)


class Own(scrapy.Request):
    """A class of requests of the project's own."""

    attributes = (*scrapy.Request.attributes, "extra")

    def __init__(self, *args: Any, extra: int = 0, **kwargs: Any) -> None:
        self.extra = extra
        super().__init__(*args, **kwargs)


def test_a_class_of_requests_of_the_projects_own_comes_back() -> None:
    back = again(Own("http://a.test/", extra=3))
    assert (type(back), back.extra) == (Own, 3)  # type: ignore[attr-defined]


@pytest.mark.parametrize("cls", ["subprocess:Popen", "scrapy.http.response:Response", "builtins:eval", "nowhere:X"])
def test_a_store_that_names_another_class_makes_no_instance_of_it(cls: str) -> None:
    plain = {"url": "http://a.test/", "callback": None, "errback": None, "_class": cls}
    with pytest.raises(NameMissing):
        PACKER.unpack(Values.pack(plain))


@pytest.mark.parametrize("name", ["trap", "name", "__class__", "crawler", "settings"])
def test_a_store_that_names_no_method_of_the_spider_gets_none(name: str) -> None:
    plain = {"url": "http://a.test/", "callback": name, "errback": None}
    with pytest.raises(NameMissing, match=name):
        Packer(TrappedRequest()).unpack(Values.pack(plain))


def test_a_link_has_the_fingerprint_the_priority_and_the_depth() -> None:
    request = scrapy.Request("http://a.test/p", priority=3, meta={"depth": 2})
    link = link_of(request, "http://a.test/p", b"data", b"print")
    assert (link.key, link.importance, link.depth, link.site) == (b"print", importance_of(3), 2, "http://a.test")


def test_priorities_about_zero_have_a_lane_each_and_no_greater_one_ever_waits_behind_a_smaller() -> None:
    lanes = [class_of(importance_of(priority)) for priority in range(-2000, 2001)]
    assert lanes == sorted(lanes, reverse=True)
    about_zero = [class_of(importance_of(priority)) for priority in range(-20, 21)]
    assert len(set(about_zero)) == 41
    assert class_of(importance_of(10)) > class_of(importance_of(100)) > class_of(importance_of(1000))


@pytest.mark.parametrize(
    ("url", "expected"), [("http://A.test:80/x#f", "http://a.test/x"), ("data:,x", None), ("file:///etc/x", None)]
)
def test_only_web_pages_are_scheduled(url: str, expected: str | None) -> None:
    assert crawlable(scrapy.Request(url)) == expected


def callback_for(kind: str) -> Callable[..., str]:
    """As scrapy-poet makes callbacks: a function that is called parse, whatever it is assigned to."""

    def parse(self: object, response: object, *, more: str = "") -> str:
        return f"{kind}{more}"

    return parse


def loud(function: Callable[..., str]) -> Callable[..., str]:
    """A decorator without functools.wraps."""

    def called(self: object, response: object) -> str:
        return function(self, response) + "!"

    return called


class Base(scrapy.Spider):
    name = "base"

    def parse_base(self, response: object) -> str:
        return "base"

    def __private(self, response: object) -> str:
        return "private of the base"

    def private_of_base(self) -> Any:
        return self.__private


def parse_alone(response: object) -> str:
    """A function beside the spider."""
    return "alone"


class NamedTheirs(Base):
    name = "theirs"
    parse_book = callback_for("book")
    parse_page = callback_for("page")

    def __init__(self) -> None:
        super().__init__()
        self.parse_set = types.MethodType(callback_for("set"), self)

    def __private(self, response: object) -> str:
        return "private"

    def private(self) -> Any:
        return self.__private

    @loud
    def parse_loud(self, response: object) -> str:
        return "loud"

    @classmethod
    def parse_class(cls, response: object) -> str:
        return "class"

    async def parse_async(self, response: object) -> str:
        return "async"

    @staticmethod
    def parse_static(response: object) -> str:
        return "static"

    @property
    def trap(self) -> object:
        """Not to be looked at."""
        raise AssertionError("a property of the spider was read")


SPIDER_of_names = NamedTheirs()
CALLBACKS = Callbacks(SPIDER_of_names)


@pytest.mark.parametrize(
    "callback",
    [
        SPIDER_of_names.parse_base,
        SPIDER_of_names.private(),
        SPIDER_of_names.private_of_base(),
        SPIDER_of_names.parse_book,
        SPIDER_of_names.parse_page,
        SPIDER_of_names.parse_set,
        SPIDER_of_names.parse_loud,
        SPIDER_of_names.parse_class,
        SPIDER_of_names.parse_async,
        SPIDER_of_names.parse_static,
        parse_alone,
    ],
)
def test_a_callback_of_the_spiders_package_has_a_name_and_comes_back(callback: Any) -> None:
    found = CALLBACKS.callback(CALLBACKS.name(callback))
    assert found == callback
    if callback.__name__ != "parse_async":
        assert found(None) == callback(None)


def test_jobdir_names_them_too() -> None:
    class Simple(Base):  # without the property, which JOBDIR would read
        parse_book = callback_for("book")

    spider = Simple()
    for callback in (spider.parse_base, spider.private_of_base(), spider.parse_book):
        request = scrapy.Request("http://a.test/", callback=callback)
        theirs = request_from_dict(request.to_dict(spider=spider), spider=spider).callback
        assert Callbacks(spider).callback(Callbacks(spider).name(callback)) == theirs == callback


def test_a_partial_of_a_method_comes_back_with_its_arguments() -> None:
    back = CALLBACKS.callback(CALLBACKS.name(functools.partial(SPIDER_of_names.parse_book, None, more="s")))
    assert back() == "books"


@pytest.mark.parametrize(
    "callback",
    [
        lambda response: None,
        callback_for("none"),
        NamedTheirs().parse_base,
        Base().parse_base,
        NamedTheirs.parse_base,
        functools.partial(print),
        functools.wraps,
    ],
)
def test_what_is_no_method_of_the_spider_has_no_name(callback: Any) -> None:
    with pytest.raises(UnstorableValue):
        CALLBACKS.name(callback)


@pytest.mark.parametrize(
    "name",
    [
        "trap", "name", "start_urls", "__class__", "gone", "logger", 7, {"partial": "gone", "args": [], "kwargs": {}},
        {"module": "functools", "function": "wraps"}, {"module": __name__, "function": "Any"}, {"function": "loud"},
        {"module": __name__, "function": "Callbacks"}, {"module": "tests.never_imported", "function": "parse"},
    ],
)  # fmt: skip
def test_a_store_that_names_no_method_gets_none_and_runs_nothing(name: Any) -> None:
    with pytest.raises(NameMissing):
        CALLBACKS.callback(name)
