"""cat: print the newest copy of a page."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Literal

import click
from msgspec import to_builtins

from webfountain.commands import options, printing
from webfountain.report import copy as report_copy
from webfountain.report.store_reading import copies, places_of, reading
from webfountain.report.texts import PageTexts, TextForm
from webfountain.terminal_text import shown, shown_lines

if TYPE_CHECKING:
    from webfountain.formats.markdown import PageFormat
    from webfountain.formats.page_reading import PageReading
    from webfountain.repository.warc_reader import StoredCopy

__all__ = ["cat"]


@click.command(epilog="Example: webfountain cat https://example.org/news --text")
@click.argument("url", callback=options.as_text)
@options.store
@options.repository
@click.option("--text", "part", flag_value="text", help="The visible text instead of the bytes.")
@click.option("--markdown", "part", flag_value="markdown", help="The page as Markdown instead.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "html"]),
    help="The page in this format instead, as `texts` writes it; html is the page's own, decoded.",
)
@click.option("--headers", "part", flag_value="headers", help="Status and headers of the answer instead.")
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
