"""What requests carry comes back as it was, of classes that are here; what has no form as data is said to have none."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import sys
import uuid
import zoneinfo
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import msgspec
import pytest
import scrapy
from parsel import Selector
from scrapy.http import Headers

from webfountain.crawl.values import NameMissing, UnstorableValue, Values, read_keys

if TYPE_CHECKING:
    import types
    from collections.abc import Iterator


class Book(scrapy.Item):
    title = scrapy.Field()
    price = scrapy.Field()


@dataclasses.dataclass
class Author:
    name: str
    books: list[Any] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        BUILT.append(self.name)


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    n: int


@attrs.frozen
class Shop:
    name: str
    open: bool = True


class Point(NamedTuple):
    x: int
    y: int


Pair = namedtuple("Pair", "a b")


class Colour(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    LOW = 1


class Word(enum.StrEnum):
    YES = "yes"


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class Text(str):
    """A kind of text."""


class Number(int):
    """A kind of number."""


class Table(dict[str, Any]):
    """A kind of dict."""


BUILT: list[str] = []
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")


def again(value: Any) -> Any:
    return Values().unpack(Values.pack(value))


@pytest.mark.parametrize(
    "value",
    [
        Book(title="a", price=decimal.Decimal("1.10")),
        Author("b", [Book(title="c"), Frozen(1)]),
        Frozen(3),
        Shop("d", open=False),
        Point(1, 2),
        Pair("a", (1, {"b"})),
        Colour.RED,
        Level.LOW,
        Word.YES,
        Rights.READ | Rights.WRITE,
        decimal.Decimal("0.10"),
        datetime.time(1, 2, 3),
        datetime.timedelta(days=-1, microseconds=5),
        datetime.datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=1),
        datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=-3))),
        datetime.timezone(datetime.timedelta(hours=2)),
        datetime.UTC,
        BERLIN,
        uuid.UUID(int=7),
        Path("/tmp/x"),
        2**70,
        -(2**70),
        bytearray(b"x"),
        1 + 2j,
        OrderedDict([("b", 1), ("a", Book(title="x"))]),
        Counter("aab"),
        defaultdict(list, {"a": [1], (1, 2): []}),
        deque([1, 2], maxlen=2),
        {Point(1, 2): Colour.RED, Colour.RED: 1},
    ],
    ids=lambda value: type(value).__name__,
)
def test_items_enums_named_tuples_and_the_kinds_of_the_library_come_back_as_they_were(value: Any) -> None:
    back = again({"it": [value]})["it"][0]
    assert (back, type(back)) == (value, type(value))
    if isinstance(value, datetime.datetime):
        assert (back.fold, str(back.tzinfo)) == (value.fold, str(value.tzinfo))
    if isinstance(value, defaultdict):
        assert back["new"] == []
    if isinstance(value, deque):
        assert back.maxlen == 2


def test_subclasses_come_back_as_what_they_are_a_subclass_of() -> None:
    link_text = Selector("<a>text</a>").xpath("//a/text()").get()
    node = Selector("<a>text</a>").root.xpath("//a/text()")[0]
    assert type(node) is not str
    values = [Text("a"), Number(3), Table(a=Text("b")), link_text, node, Headers({"A": "b"})]
    back = again(values)
    assert back == ["a", 3, {"a": "b"}, "text", "text", {b"A": [b"b"]}]
    assert [type(value) for value in back] == [str, int, dict, str, str, dict]


def test_an_instance_is_made_without_its_constructor() -> None:
    packed = Values.pack(Author("z"))
    BUILT.clear()
    assert Values().unpack(packed) == dataclasses.replace(Author("z"))
    assert BUILT.count("z") == 2  # of the comparison's own two


def local() -> Any:
    @dataclasses.dataclass
    class Local:
        n: int = 1

    return Local()


@pytest.mark.parametrize(
    "value",
    [object(), lambda: None, Book, Selector("<a>x</a>"), local(), defaultdict(lambda: 3), [{"deep": (object(),)}]],
    ids=lambda value: type(value).__name__,
)
def test_a_value_that_is_not_data_is_refused(value: Any) -> None:
    with pytest.raises(UnstorableValue):
        Values.pack(value)


def test_a_value_that_contains_itself_has_no_form() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(UnstorableValue):
        Values.pack(endless)


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    """A module of the project's package, loaded."""
    package = tmp_path / "theirpackage"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "items.py").write_text("import scrapy\nclass Thing(scrapy.Item):\n    n = scrapy.Field()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import importlib

    module = importlib.import_module("theirpackage.items")
    yield module
    for name in ("theirpackage.items", "theirpackage"):
        sys.modules.pop(name, None)


def test_a_class_that_is_not_loaded_is_imported_from_the_projects_own_packages_alone(
    theirs: types.ModuleType,
) -> None:
    packed = Values.pack({"it": theirs.Thing(n=1)})
    del sys.modules["theirpackage.items"]
    with pytest.raises(NameMissing, match=r"theirpackage\.items:Thing"):
        Values().unpack(packed)
    with pytest.raises(NameMissing):
        Values(["other"]).unpack(packed)
    assert dict(Values(["theirpackage"]).unpack(packed)["it"]) == {"n": 1}


@pytest.mark.parametrize(
    ("kind", "path", "content"),
    [
        ("item", "subprocess:Popen", {"args": "true"}),
        ("dataclass", "pathlib:Path", {}),
        ("enum", "builtins:eval", ["x", "1"]),
        ("namedtuple", "builtins:tuple", [1]),
        ("item", "os:system", {}),
        ("item", "antigravity:Fly", {}),
    ],
)
def test_a_store_that_names_other_classes_makes_none_of_them(kind: str, path: str, content: Any) -> None:
    forged = msgspec.msgpack.encode(msgspec.msgpack.Ext(8, msgspec.msgpack.encode([kind, path, content])))
    with pytest.raises(NameMissing):
        Values(["theirs"]).unpack(forged)
    assert "antigravity" not in sys.modules


def test_plain_values_are_read_without_a_class() -> None:
    packed = Values.pack({"meta": {7: "x", "flag": True, "item": Book(title="a"), "when": datetime.date(2026, 1, 2)}})
    assert read_keys(packed, "meta") == {7: "x", "flag": True, "item": None, "when": datetime.date(2026, 1, 2)}
