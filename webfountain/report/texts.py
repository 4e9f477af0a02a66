"""Texts for a search or RAG index: one line per page, with a cursor on each line.

A reader first gets the texts of all pages, and later the texts of changed pages. An interrupted reader continues with
the cursor of its last line. A cursor of the list of all pages contains the change-log position at which the list began.
If a copy cannot be read, all later cursors point before its page, so that the reader tries the page again.
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
    """Options for the texts: their format, whether they contain only the main content, and whether metadata are
    added.
    """

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
        """Parse a cursor of the list of all pages. Raise InputError if `text` is no cursor of this list."""
        found = _LIST_CURSOR.fullmatch(text)
        if found is None or not is_cursor(found["log"]) or len(found["key"]) % 2:
            raise InputError(f"{text!r} is not a cursor of `texts` (each of its lines has one)")
        return cls(found["log"], found["site"], bytes.fromhex(found["key"]))


def is_list_cursor(text: str) -> bool:
    """Return whether a text looks like a cursor of the list of all pages."""
    found = _LIST_CURSOR.fullmatch(text)
    return found is not None and is_cursor(found["log"])


class TextRules(NamedTuple):
    """The settings of a policy file that affect texts: policies that use only the main content, and extractors."""

    main_policies: frozenset[str]
    extractors: dict[str, str]


class PageTexts:
    """Reads the texts of copies, with the settings of the policy file.

    A project's own extractors run in a child process. Call `close` to end the child process of the extractors.
    """

    def __init__(self, store: FrontierStore) -> None:
        self._store = store

    def of_copy(self, copy: StoredCopy, form: TextForm = _PLAIN) -> PageReading:
        """Return title, text and metadata of a copy, read with the settings of the page's policy."""
        record = page_at(self._store, copy.url)
        return self.by_policy(copy, form, "" if record is None else record.policy, self.rules())

    def by_policy(self, copy: StoredCopy, form: TextForm, policy: str, rules: TextRules) -> PageReading:
        """Return title, text and metadata of a copy, read with the settings of a given policy.

        If an extractor fails, the text is empty. If the media type has an extractor and `copy` has only the beginning
        of the body, the text is empty.
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
        """Return the settings in the policy file that the crawl uses now. Each call reads the whole policy file from
        the store."""
        kept = self._store.board.value(COLLECTION)
        with suppress(PolicyError):  # a file that it names is missing, perhaps only for a moment: do not remember this
            if kept is not None:
                return _text_rules(kept)
        return TextRules(frozenset(), {})

    def close(self) -> None:
        """End the child process, if there is one. Calling `close` again has no effect."""
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
    """Reads the copies for one list of texts. A list of texts uses the same policy file until its end, even if a user
    edits the policy file."""

    def __init__(self, store: FrontierStore, repository: Pages, form: TextForm) -> None:
        self._repository = repository
        self._form = form
        self._texts = PageTexts(store)
        self._rules = self._texts.rules()

    def line(self, record: PageRecord) -> dict[str, Any]:
        """Return the line of a page that has a copy. Raise RepositoryError if the copy cannot be read."""
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
    """A line of the output, and the cursor with which a reader continues after the line. `line` is None if the output
    has no line for the page."""

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
    """Yield a line for each page that has a copy, and for each gone page that once had a copy.

    The text and title of a gone page are None. `verdict` is new, changed, minor or gone. If a copy cannot be read, the
    page is skipped and `unreadable` is called with the reason. To get the later changes, pass the cursor of the last
    line to `texts_since`.
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
    """Yield the pages that changed since a cursor, each once and in its current state. The text is None if the
    collection no longer has a copy of the page.

    `verdict` is `new` for a page that was found after the cursor, else the newest verdict in the change log. The pages
    are sorted by the time of their last change. The call takes memory for each page that changed since the cursor.

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
    """Yield the line of each row, with a cursor to continue after the line. If all copies could be read, the last line
    has the cursor `end`."""
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
    """Yield the rows that follow a position in the list of all pages."""
    if place.key and store.sites.get(place.site) is not None:
        yield from _of_site(store, copies, place)
    for site in every_site(store, after=place.site):
        yield from _of_site(store, copies, ListPlace(place.log, site.site))


def _of_site(store: FrontierStore, copies: _Copies, place: ListPlace) -> Iterator[_Row]:
    """Yield the rows of one site's pages after a page key, sorted by key. The keys of the site's pages are held in
    memory, eight bytes each."""
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
    """Return whether a page has a copy, or is gone but once had a copy."""
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
    """Read the copy of a page and return its row.

    If the collection no longer has a copy of the page, the row's `line` is None.

    If a crawl has replaced the copy, read the new copy.
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
