"""The command `explain`: why a URL is in its state, or was never accepted."""

from __future__ import annotations

import click

from webfountain.clock import SystemClock
from webfountain.commands import options, printing
from webfountain.report.store_reading import link_log, reading
from webfountain.store.locations import folder_of
from webfountain.terminal_text import shown

__all__ = ["explain"]


@click.command(epilog="Example: webfountain explain https://example.org/news")
@click.argument("url", callback=options.as_text)
@options.store
@click.option("--collection", metavar="FILE", help="Explain under this policy file.  [default: the one in force]")
@click.option(
    "--from",
    "linked_by",
    callback=options.as_text,
    metavar="PAGE",
    help="For an unknown URL: as a link of this page.",
)
@options.as_json
def explain(url: str, store: str, collection: str | None, linked_by: str | None, as_json: bool) -> None:
    """Explain why URL has its policy, trust, importance and next visit, or why it was never accepted."""
    from webfountain.report import explain as explaining  # noqa: PLC0415  numpy, 0.1 s

    with reading(store) as opened:
        rules = explaining.collection_of(opened, collection)
        home = folder_of(store)
        scores = None if home is None else home / "scores"
        links, at = link_log(rules, store), SystemClock().now()
        found = explaining.explain(opened, rules, url, at=at, linked_by=linked_by, scores=scores, links=links)
    printing.print_json(found) if as_json else print("\n".join(map(shown, (found.url or found.given, *found.why))))
