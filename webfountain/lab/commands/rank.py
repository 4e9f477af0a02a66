"""The command `rank`: rank the pages of a graph or of a store by their links."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from webfountain.commands import options, printing
from webfountain.report.store_reading import existing_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["rank"]

_FILE = click.Path(path_type=Path)


@click.command(epilog="Example: webfountain rank --graph cnr-2000.npz --out scores.npy")
@click.option("--graph", type=_FILE, metavar="FILE.npz", help="A graph instead of a store: indptr and indices.")
@options.store
@click.option(
    "--method",
    type=click.Choice(("pagerank", "trustrank", "backlinks")),
    default="pagerank",
    show_default=True,
    help="What a page is worth: by who links to it, from what is trusted, or by how many do.",
)
@click.option("--damping", type=float, metavar="D", help="Part that follows the links.  [default: 0.9, trustrank 0.85]")
@click.option(
    "--trusted", type=_FILE, metavar="FILE", help="trustrank's seeds: a URL, or a page's number, on each line."
)
@click.option("--out", type=_FILE, metavar="FILE.npy", help="Write all scores, in the order of the ids.")
@options.as_json
def rank(*, graph: Path | None, store: str, as_json: bool, out: Path | None, **given: Any) -> None:
    """Rank pages by their links: PageRank, TrustRank or backlinks."""
    from webfountain.lab.rank_document import rank_file, rank_log  # noqa: PLC0415  scipy, 0.5 s

    if graph is not None:
        document = rank_file(graph, out=out, **given)
    else:
        document = rank_log(str(existing_folder(store) / "links"), out=out, **given)
    if as_json:
        printing.print_json(document)
        return
    print(f"{document['nodes']:,} pages, {document['edges']:,} links, {document['iterations']} iterations")
    _print_top(document["top"])


def _print_top(top: Sequence[Sequence[Any]]) -> None:
    rows = ({"page": page, "score": score} for page, score in top)
    printing.print_table(rows, {"page": lambda row: str(row["page"]), ">score": lambda row: f"{row['score']:.3e}"})
