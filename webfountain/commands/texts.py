"""The commands that print copies: `texts` for a search or RAG index, `cat` for one page."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Literal

import click
from msgspec import to_builtins

from webfountain.commands import options, printing
from webfountain.errors import InputError, RepositoryError
from webfountain.report import copy as report_copy
from webfountain.report.plurals import counted
from webfountain.report.store_reading import copies, cursor_of, places_of, reading
from webfountain.report.texts import ListPlace, PageTexts, TextForm, is_list_cursor, texts_since
from webfountain.report.texts import texts as all_texts
from webfountain.terminal_text import shown, shown_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from webfountain.formats.markdown import PageFormat
    from webfountain.formats.page_reading import PageReading
    from webfountain.repository.warc_reader import StoredCopy

__all__ = ["cat", "texts"]

_form = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "html"]),
    default="text",
    help="Format of the text; html is the page's own HTML.",
)


@click.command(epilog="Example: webfountain texts --jsonl --format markdown --main --since 2026-01-31T12:00")
@options.store
@options.repository
@click.option(
    "--since",
    metavar="TIME|CURSOR",
    help="Only pages added, changed or removed since then: a cursor of the change log, UTC seconds, or "
    "2026-01-31T12:00.",
)
@_form
@options.main_content
@click.option("--metadata", is_flag=True, help="Add the description, language, author and dates that the page gives.")
@options.as_lines
def texts(
    *,
    store: str,
    repository: str | None,
    since: str | None,
    form: PageFormat,
    main: bool,
    metadata: bool,
    as_lines: bool,
) -> None:
    """Print the texts of all pages, or of those that changed since a time or cursor.

    Each line has url, verdict, fetched, title, text and cursor. The text is null if the collection no longer has a copy
    of the page.
    """
    place = ListPlace.parse(since) if since is not None and is_list_cursor(since) else None
    asked = None if place is not None else options.since_of(since)
    written = TextForm(form, main, metadata)
    lost: list[RepositoryError] = []
    with (
        reading(store) as opened,
        copies(store, repository, places=places_of(opened)) as kept,
    ):
        cursor = cursor_of(opened, asked)
        if cursor is None:
            rows = all_texts(opened, kept, behind=place, unreadable=lost.append, form=written)
        else:
            rows = texts_since(opened, kept, cursor, unreadable=lost.append, form=written)
        printing.print_json_lines(rows) if as_lines else _print_texts(rows)
    if lost:
        raise RepositoryError(
            f"{counted(len(lost), 'copy')} cannot be read here (the first: {lost[0]}), and cursors stop before "
            f"them; `webfountain check --repair` makes pages with damaged copies due"
        )


def _print_texts(rows: Any) -> None:
    columns = {
        "verdict": lambda row: row["verdict"],
        "fetched (UTC)": lambda row: printing.spell_time(row["fetched"]),
        ">characters": lambda row: "-" if row["text"] is None else f"{len(row['text']):,}",
        "url": lambda row: row["url"],
        "title": lambda row: row["title"] or "-",
    }
    last: dict[str, Any] = {}
    printing.print_table(_noting(rows, last), columns)
    if last:
        print(f"continue with --since {last['cursor']}")


def _noting(rows: Iterable[Mapping[str, Any]], last: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the rows unchanged, and keep a copy of the newest row in `last`."""
    for row in rows:
        last.update(row)
        yield row


@click.command(epilog="Example: webfountain cat https://example.org/news --text")
@click.argument("url", callback=options.as_text)
@options.store
@options.repository
@click.option("--text", "part", flag_value="text", help="Print the visible text instead of the bytes.")
@click.option("--markdown", "part", flag_value="markdown", help="Print the page as Markdown instead.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "html"]),
    help="Print the page in one of the formats of `texts`; html is the page's own HTML, decoded.",
)
@click.option("--headers", "part", flag_value="headers", help="Print the status and headers of the response instead.")
@options.main_content
@options.as_json
def cat(
    url: str,
    *,
    store: str,
    repository: str | None,
    part: PageFormat | Literal["headers"] | None,
    form: PageFormat | None,
    main: bool,
    as_json: bool,
) -> None:
    """Print the newest copy of URL after content decoding."""
    if part is not None and form is not None and part != form:
        raise InputError(f"cat: --{part} and --format {form}: give only one of the two")
    with (
        reading(store) as opened,
        copies(store, repository, places=places_of(opened)) as kept,
    ):
        copy = report_copy.cat(opened, kept, url)
        if form is None and part != "headers":
            form = part or ("text" if main else None)
        is_read = as_json or form is not None
        found = PageTexts(opened).of_copy(copy, TextForm(form or "text", main)) if is_read else None
    if found is not None and as_json:
        printing.print_json(_copy_document(copy, found))
    elif found is not None:
        print(shown_lines(found.text))
    elif part == "headers":
        print("\n".join([str(copy.status), *(shown(f"{name}: {value}") for name, value in copy.headers)]))
    elif sys.stdout.isatty():  # untrusted bytes could move the cursor of the terminal
        print(shown_lines(copy.body.decode("utf-8", "replace")))
    else:
        sys.stdout.buffer.write(copy.body)
        sys.stdout.buffer.flush()


def _copy_document(copy: StoredCopy, found: PageReading) -> dict[str, Any]:
    headers = [list(header) for header in copy.headers]
    answer = {"url": copy.url, "fetched": copy.at, "status": copy.status, "headers": headers}
    return {**answer, "title": found.title, "text": found.text, "metadata": to_builtins(found.metadata)}
