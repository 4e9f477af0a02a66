"""Texts for a search or RAG index: each held page as text, with a cursor on each line.

The list of all pages comes first, then the changes. An interrupted reader continues with the cursor of its last line. A
cursor in the list contains a page and the position of the change log when the list began, so changes made meanwhile
follow later. After an unreadable copy the cursor does not move on, so the reader tries this copy again.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import to_builtins

from webfountain.errors import InputError, PolicyError, RepositoryError
from webfountain.formats.media_type import content_type
from webfountain.formats.page_metadata import PageMetadata
from webfountain.formats.page_reading import PageReading, read_page
from webfountain.formats.page_units import ReadingRules
from webfountain.policy.collection_file import CollectionInForce
from webfountain.policy.counting import counting_rules
from webfountain.records import COPIED
from webfountain.report.store_reading import every_change, every_site, page_at
from webfountain.store.change_log import KEPT, is_cursor, is_held
from webfountain.store.contract import COLLECTION
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from webfountain.formats.markdown import PageFormat
    from webfountain.records import Change, PageRecord
    from webfountain.repository.repository import Pages
    from webfountain.repository.warc_reader import StoredCopy
    from webfountain.sandbox.reader import FencedReader
    from webfountain.store.contract import FrontierStore

__all__ = ["ListPlace", "PageTexts", "TextForm", "TextRules", "is_list_cursor", "texts", "texts_since"]

_PAGES_AT_ONCE: Final = 500
_LIST_CURSOR: Final = re.compile(r"(?P<log>[^+]+)\+(?P<key>[0-9a-f]*)\+(?P<site>[!-~]*)")


class TextForm(NamedTuple):
    """Form of the written texts: the format, the main content or the whole page, with or without metadata."""

    form: PageFormat = "text"
    main: bool = False
    metadata: bool = False


_PLAIN: Final = TextForm()


class ListPlace(NamedTuple):
    """A position in the list of all pages.

    - `log`: cursor of the change log when the list began.
    - `site`, `key`: the last page before the position. Sites are in order of name, pages in order of key.
    """

    log: str
    site: str = ""
    key: bytes = b""

    def __str__(self) -> str:
        return f"{self.log}+{self.key.hex()}+{self.site}"

    @classmethod
    def parse(cls, text: str) -> ListPlace:
        """Return the position that a list cursor contains. Raise InputError if `text` is no list cursor."""
        found = _LIST_CURSOR.fullmatch(text)
        if found is None or not is_cursor(found["log"]) or len(found["key"]) % 2:
            raise InputError(f"{text!r} is not a cursor of `texts` (each of its lines has one)")
        return cls(found["log"], found["site"], bytes.fromhex(found["key"]))


def is_list_cursor(text: str) -> bool:
    """Return whether a text has the form of a list cursor."""
    found = _LIST_CURSOR.fullmatch(text)
    return found is not None and is_cursor(found["log"])


class TextRules(NamedTuple):
    """What a policy file says about texts: the policies whose text is the main content, and the extractors by media
    type.
    """

    main_policies: frozenset[str]
    extractors: dict[str, str]


class PageTexts:
    """The texts of a collection's copies, read by the rules of their policies. The crawl compares the same texts.

    A project's own extractors run in a child process. `close`, or the end of this object, ends the process.
    """

    def __init__(self, store: FrontierStore) -> None:
        self._store = store

    def of_copy(self, copy: StoredCopy, form: TextForm = _PLAIN) -> PageReading:
        """Return title, text and metadata of a copy, by the policy of its page."""
        record = page_at(self._store, copy.url)
        return self.by_policy(copy, form, "" if record is None else record.policy, self.rules())

    def by_policy(self, copy: StoredCopy, form: TextForm, policy: str, rules: TextRules) -> PageReading:
        """Return title, text and metadata of a copy, by a given policy.

        If an extractor fails, the text is empty. An extractor gets only whole bodies, so it is not called for the
        beginning of a copy.
        """
        kind = content_type(copy.headers)
        if kind.kind in rules.extractors and not (kind.is_html and form.form == "html"):
            if len(copy.body) < copy.size:
                return PageReading(None, "", PageMetadata())
            document = self._fenced.read(copy.body, kind, None, ReadingRules(extractors=rules.extractors))
            return PageReading(document.title, document.text, PageMetadata(title=document.title))
        is_main = form.main or policy in rules.main_policies
        return read_page(copy.body, kind, copy.url, form=form.form, main=is_main)

    def rules(self) -> TextRules:
        """Return the rules in force. The cost is one read of the whole policy file from the store."""
        kept = self._store.board.value(COLLECTION)
        with suppress(PolicyError):  # a file that it names is missing, perhaps only for a moment: do not remember this
            if kept is not None:
                return _text_rules(kept)
        return TextRules(frozenset(), {})

    def close(self) -> None:
        """End the child process, if there is one. A second call has no effect."""
        fenced: FencedReader | None = self.__dict__.pop("_fenced", None)
        if fenced is not None:
            fenced.close()

    @cached_property
    def _fenced(self) -> FencedReader:
        from webfountain.formats.links import LinkExtractor  # noqa: PLC0415  few collections have extractors
        from webfountain.sandbox.reader import FencedReader  # noqa: PLC0415

        return FencedReader(LinkExtractor(nofollow=True, robot=""))


@lru_cache(8)
def _text_rules(kept: bytes) -> TextRules:
    collection = CollectionInForce.decode(kept).read()
    mains = (name for name in collection.policies if counting_rules(collection, name).reading.main)
    return TextRules(frozenset(mains), collection.tables.content.extractors)


class _Copies:
    """The copies of a list, with the form and the rules of their texts. The rules are those at the beginning of the
    list."""

    def __init__(self, store: FrontierStore, repository: Pages, form: TextForm) -> None:
        self._repository = repository
        self._form = form
        self._texts = PageTexts(store)
        self._rules = self._texts.rules()

    def line(self, record: PageRecord) -> dict[str, Any]:
        """Return the line of a page with a copy. Raise RepositoryError if the copy cannot be read."""
        assert record.copy is not None
        copy = self._repository.read(record.copy, record.url)
        found = self._texts.by_policy(copy, self._form, record.policy, self._rules)
        verdict = record.verdict if record.verdict in COPIED else "changed" if record.changes else "new"
        line = {
            "url": record.url,
            "verdict": verdict,
            "fetched": record.copied,
            "title": found.title,
            "text": found.text,
        }
        return {**line, "metadata": to_builtins(found.metadata)} if self._form.metadata else line


class _Row(NamedTuple):
    """A line, and the cursor with which a reader continues after it. `line` is None if there is nothing to write."""

    line: dict[str, Any] | None
    cursor: str
    error: RepositoryError | None = None


def texts(
    store: FrontierStore,
    repository: Pages,
    *,
    behind: ListPlace | None = None,
    unreadable: Callable[[RepositoryError], None],
    form: TextForm = _PLAIN,
) -> Iterator[dict[str, Any]]:
    """Yield a line for each page with a copy, and for each gone page that had one. Begin after the position `behind`.

    The text and title of a gone page are None. `verdict` is new, changed, minor or gone. An unreadable copy is skipped,
    and `unreadable` is called with the reason. The last line has the change log's cursor, for `texts_since`.
    """
    # Read the end of the log before the list, so that changes during the list are reported again.
    place = ListPlace(store.changes.end()) if behind is None else behind
    return _with_cursors(
        _listed(store, _Copies(store, repository, form), place),
        str(place),
        end=place.log,
        unreadable=unreadable,
    )


def texts_since(
    store: FrontierStore,
    repository: Pages,
    cursor: str,
    *,
    unreadable: Callable[[RepositoryError], None],
    form: TextForm = _PLAIN,
) -> Iterator[dict[str, Any]]:
    """Yield the pages that changed since a cursor, each once and in its current state. The text is None if the page is
    no longer held.

    `verdict` is new if the page is new since the cursor, else the verdict of its last entry in the change log. Pages
    are in the order of their last entries. The cost grows with the number of changes.

    Raises
    ------
    InputError, CursorLost
        if the text is not a cursor, or the log no longer reaches back that far.
    """
    found: dict[tuple[str, bytes], tuple[str, Change, bool]] = {}
    end = cursor
    for end, entry in every_change(store, cursor):
        name = entry.site, entry.key
        before = found.pop(name, None)  # it moves to the place of its newest entry
        found[name] = end, entry, entry.verdict == "new" or (before is not None and before[2])
    return _with_cursors(
        _changed(store, _Copies(store, repository, form), found.values()),
        cursor,
        end=end,
        unreadable=unreadable,
    )


def _with_cursors(
    rows: Iterable[_Row], begin: str, *, end: str, unreadable: Callable[[RepositoryError], None]
) -> Iterator[dict[str, Any]]:
    """Yield the lines of rows, each with its cursor. The last line has the cursor `end`, unless a copy could not be
    read."""
    passed, is_stuck = begin, False
    held: dict[str, Any] | None = None
    for row in rows:
        if row.error is not None:
            unreadable(row.error)
            is_stuck = True
        if not is_stuck:
            passed = row.cursor
        if row.line is not None:
            if held is not None:
                yield held
            held = {**row.line, "cursor": passed}
    if held is not None:
        yield held if is_stuck else {**held, "cursor": end}


def _listed(store: FrontierStore, copies: _Copies, place: ListPlace) -> Iterator[_Row]:
    """Yield the rows of the list of all pages after a position."""
    if place.key and store.sites.get(place.site) is not None:
        yield from _of_site(store, copies, place)
    for site in every_site(store, after=place.site):
        yield from _of_site(store, copies, ListPlace(place.log, site.site))


def _of_site(store: FrontierStore, copies: _Copies, place: ListPlace) -> Iterator[_Row]:
    """Yield the rows of one site after a key, in order of key. The site's keys are in memory, eight bytes each."""
    keys = sorted(
        key
        for _, record in store.pages.records(site=place.site)
        if _is_listed(record) and (key := fingerprint(record.url)) > place.key
    )
    for begin in range(0, len(keys), _PAGES_AT_ONCE):
        some = keys[begin : begin + _PAGES_AT_ONCE]
        for key, record in zip(some, store.pages.get_many(place.site, some), strict=True):
            cursor = str(ListPlace(place.log, place.site, key))
            if record is None or not _is_listed(record):
                yield _Row(None, cursor)  # the change log will report it
            elif record.state == "gone":
                yield _Row(_tombstone(record.url, "gone", record.last_crawled), cursor)
            else:
                yield _row_of(store, copies, record, cursor)


def _is_listed(record: PageRecord) -> bool:
    """Return whether a page has a copy, or had one before it was gone."""
    return is_held(record) or (record.state == "gone" and record.digest is not None)


def _changed(store: FrontierStore, copies: _Copies, changes: Iterable[tuple[str, Change, bool]]) -> Iterator[_Row]:
    for cursor, entry, is_new in changes:
        if entry.verdict not in KEPT:
            yield _Row(_tombstone(entry.url, entry.verdict, entry.at), cursor)
            continue
        record = store.pages.get(entry.site, entry.key)
        if record is None:
            yield _Row(None, cursor)
            continue
        row = _row_of(store, copies, record, cursor)
        verdict = "new" if is_new else entry.verdict
        yield row if row.line is None else row._replace(line={**row.line, "verdict": verdict})


def _row_of(store: FrontierStore, copies: _Copies, record: PageRecord, cursor: str) -> _Row:
    """Return the row of a page. The row has no line if the page is no longer held.

    A crawl may replace the copy meanwhile. The record is then read again, and the new copy is used.
    """
    tried = None
    while True:
        if not is_held(record) or record.copy is None:
            return _Row(None, cursor)
        try:
            return _Row(copies.line(record), cursor)
        except RepositoryError as error:
            now = page_at(store, record.url)
            if now is None or now.copy in (record.copy, tried):
                return _Row(None, cursor, None if now is None else error)
            tried, record = record.copy, now


def _tombstone(url: str, verdict: str, at: float | None) -> dict[str, Any]:
    return {"url": url, "verdict": verdict, "fetched": at, "title": None, "text": None}
