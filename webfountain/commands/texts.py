"""The command `texts`: what changed, as text for a search or RAG index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from webfountain.commands import options, printing
from webfountain.errors import RepositoryError
from webfountain.report.plurals import counted
from webfountain.report.store_reading import copies, cursor_of, places_of, reading
from webfountain.report.texts import ListPlace, TextForm, is_list_cursor, texts_since
from webfountain.report.texts import texts as all_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from webfountain.formats.markdown import PageFormat

__all__ = ["texts"]

_form = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "html"]),
    default="text",
    help="Format of the text; html is the page's own.",
)


@click.command(epilog="Example: webfountain texts --jsonl --format markdown --main --since 2026-01-31T12:00")
@options.store
@options.repository
@click.option(
    "--since",
    metavar="TIME|CURSOR",
    help="Only what came, changed or went since: a cursor of the change log, UTC seconds, or 2026-01-31T12:00.",
)
@_form
@options.main_content
@click.option("--metadata", is_flag=True, help="Add description, language, author and times that the page states.")
@click.option("--jsonl", "--json", "as_lines", is_flag=True, help="Print JSON lines: one document a line.")
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
    """Print what changed, as text: url, verdict, fetched, title, text, cursor. A page that is no longer held has text
    null."""
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
    """Yield the rows, and store the last one in `last`."""
    for row in rows:
        last.update(row)
        yield row
