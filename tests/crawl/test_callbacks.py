"""Callbacks have the names that JOBDIR finds, and no lookup runs anything of the spider."""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any

import pytest
import scrapy
from scrapy.utils.request import request_from_dict

from webfountain.crawl.callbacks import Callbacks
from webfountain.crawl.values import NameMissing, UnstorableValue

if TYPE_CHECKING:
    from collections.abc import Callable


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


class Theirs(Base):
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


SPIDER = Theirs()
CALLBACKS = Callbacks(SPIDER)


@pytest.mark.parametrize(
    "callback",
    [
        SPIDER.parse_base,
        SPIDER.private(),
        SPIDER.private_of_base(),
        SPIDER.parse_book,
        SPIDER.parse_page,
        SPIDER.parse_set,
        SPIDER.parse_loud,
        SPIDER.parse_class,
        SPIDER.parse_async,
        SPIDER.parse_static,
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
    back = CALLBACKS.callback(CALLBACKS.name(functools.partial(SPIDER.parse_book, None, more="s")))
    assert back() == "books"


@pytest.mark.parametrize(
    "callback",
    [
        lambda response: None,
        callback_for("none"),
        Theirs().parse_base,
        Base().parse_base,
        Theirs.parse_base,
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
