"""``python -m webfountain.demo``: serve a generated web on loopback until told to end."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from webfountain.demo.answers import WebClock
from webfountain.demo.command import add_serving_options, run_server
from webfountain.demo.web import GeneratedWeb

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m webfountain.demo", description=__doc__)
    add = parser.add_argument
    add("--seed", type=int, default=1, help="another seed, another web")
    add("--sites", type=int, default=5)
    add("--pages", type=int, default=200, help="live pages of all sites together at the start")
    add("--period", type=float, default=10.0, help="seconds that a period of the web lasts; 0 stops its time")
    add("--origin", type=float, default=0.0, help="the web's time at the start, in periods")
    add("--body-bytes", type=int, default=6000, help="about what a page has")
    add("--links", type=int, default=20, help="about what a page has")
    add("--births", type=float, default=0.2, help="pages that appear during the span, as a share of the pages")
    add("--deaths", type=float, default=0.1, help="pages that vanish during the span, as a share of the pages")
    add("--span", type=float, default=30.0, help="periods in which pages appear and vanish")
    add("--sitemap-share", type=float, default=0.25, help="share of the pages that the sitemaps list")
    add_serving_options(parser)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse, serve, and give the exit status."""
    options = _parser().parse_args(arguments)
    rate = 1 / options.period if options.period else 0.0
    clock = WebClock.start(options.origin, rate)

    def make_web(bases: list[str], clock: WebClock) -> GeneratedWeb:
        return GeneratedWeb(
            options.seed,
            sites=options.sites,
            pages=options.pages,
            body_bytes=options.body_bytes,
            links=options.links,
            births=options.births,
            deaths=options.deaths,
            span=options.span,
            sitemap_share=options.sitemap_share,
            bases=bases,
            utc=clock.utc,
        )

    try:
        run_server(options, options.sites, make_web, clock)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"webfountain demo: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
