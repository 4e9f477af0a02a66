"""The command `serve`: collections over HTTP, for programs and people."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import click
import msgspec

from webfountain.commands import options
from webfountain.commands.index_child import index_beside
from webfountain.service.settings import DEFAULT_ADDRESS, ServeSettings, read_settings, store_entry

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["serve"]


@click.command(epilog="Example: webfountain serve --store rocksdb://news --listen 127.0.0.1:9411")
@click.option(
    "--store", "stores", metavar="URL", multiple=True, envvar="WEBFOUNTAIN_STORE", help="A store to serve; repeatable."
)
@options.repository
@click.option("--config", metavar="FILE", help="A TOML file with these settings and with names for the stores.")
@click.option(
    "--listen",
    metavar="ADDRESS",
    multiple=True,
    help=f"HOST:PORT, or the path of a Unix socket; repeatable.  [default: {DEFAULT_ADDRESS}]",
)
@click.option("--tokens", metavar="FILE", help="Tokens with roles, one a line; a file of mode 0600.")
@click.option("--base-path", metavar="PATH", help="Path under which a proxy offers the service, such as /crawl.")
@click.option("--read-only", is_flag=True, help="Refuse all operations, whatever the token.")
@click.option("--search", is_flag=True, help="Keep a search index of each store, in a process of its own.")
@click.option("--until-stdin-closes", is_flag=True, hidden=True)
def serve(*, search: bool, until_stdin_closes: bool, **given: Any) -> None:
    """Serve collections over HTTP: status, pages, changes, history, notes to the crawl, metrics.

    The service works with and without running crawls, and uses neither their loop nor their lock. All addresses are
    described at /v1/openapi.json.
    """
    from webfountain.service.server import serve as run  # noqa: PLC0415  aiohttp, 0.3 s

    logging.basicConfig(level=logging.WARNING, format="webfountain: %(message)s")
    settings = _settings(**given)
    with index_beside(settings.stores if search else ()):
        asyncio.run(run(settings, listening=_print_addresses, until_stdin_closes=until_stdin_closes))


def _settings(
    *,
    stores: Sequence[str],
    repository: str | None,
    config: str | None,
    listen: Sequence[str],
    tokens: str | None,
    base_path: str | None,
    read_only: bool,
) -> ServeSettings:
    """Return the settings from the file, overridden by those of the command line."""
    found = ServeSettings() if config is None else read_settings(config)
    given = {
        "stores": tuple(store_entry(url, repository=repository) for url in stores),
        "listen": tuple(listen),
        "tokens": tokens,
        "base_path": base_path,
        "read_only": read_only,
    }
    return msgspec.structs.replace(found, **{name: value for name, value in given.items() if value}).checked()


def _print_addresses(addresses: list[str]) -> None:
    for address in addresses:
        print(f"webfountain serves at {address}", flush=True)
