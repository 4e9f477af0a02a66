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
@click.option(
    "--graph", type=_FILE, metavar="FILE.npz", help="Rank a graph instead of a store: npz with indptr and indices."
)
@options.store
@click.option(
    "--method",
    type=click.Choice(("pagerank", "trustrank", "backlinks")),
    default="pagerank",
    show_default=True,
    help="Score of a page: by the links to it (pagerank), by links from trusted pages (trustrank), or by their "
    "number (backlinks).",
)
@click.option(
    "--damping", type=float, metavar="D", help="Share of the score that follows links.  [default: 0.9, trustrank 0.85]"
)
@click.option("--trusted", type=_FILE, metavar="FILE", help="Seeds of trustrank: one URL or page number per line.")
@click.option("--out", type=_FILE, metavar="FILE.npy", help="Write all scores to FILE, in the order of the pages' ids.")
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
