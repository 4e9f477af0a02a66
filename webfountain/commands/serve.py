"""The commands that serve collections: `serve` to programs or people, `mcp` to language models."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import click
import msgspec
from click.core import ParameterSource

from webfountain.commands import options
from webfountain.commands.children import index_beside
from webfountain.errors import InputError
from webfountain.report.store_reading import existing_folder
from webfountain.service.roles import read_tokens
from webfountain.service.settings import DEFAULT_ADDRESS, ServeSettings, address_of, read_settings, store_entry
from webfountain.store.locations import folder_of, is_shared

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["mcp", "serve"]

logger = logging.getLogger(__name__)


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
@click.option("--tokens", metavar="FILE", help="Tokens with roles, one per line; a file of mode 0600.")
@click.option("--base-path", metavar="PATH", help="Path under which a proxy offers the service, such as /crawl.")
@click.option("--read-only", is_flag=True, help="Refuse all operations, even with an operator's token.")
@click.option("--search", is_flag=True, help="Keep a search index of each store, in a process of its own.")
@click.option("--until-stdin-closes", is_flag=True, hidden=True)
def serve(*, search: bool, until_stdin_closes: bool, **given: Any) -> None:
    """Serve collections over HTTP: status, pages, changes, history, notes to the crawl, metrics.

    Crawls may run at the same time: the service uses neither their event loop nor their lock on the store. All URLs of
    the service are described at /v1/openapi.json.
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
    """Return the settings of the service. An option of the command line overrides the configuration file."""
    found = ServeSettings() if config is None else read_settings(config)
    if found.stores and click.get_current_context().get_parameter_source("stores") is ParameterSource.ENVIRONMENT:
        stores = ()  # WEBFOUNTAIN_STORE is a default, which the file replaces
    given = {
        "stores": tuple(store_entry(url, repository=repository) for url in stores),
        "listen": tuple(listen),
        "tokens": tokens,
        "base_path": base_path,
        "read_only": read_only,
    }
    settings = msgspec.structs.replace(found, **{name: value for name, value in given.items() if value}).checked()
    for store in settings.stores:
        if (folder := folder_of(store.url)) is not None and not folder.is_dir():
            logger.warning("there is no folder %s; %r is unavailable until a crawl makes one", folder, store.name)
    return settings


def _print_addresses(addresses: list[str]) -> None:
    for address in addresses:
        print(f"webfountain serves at {address}", flush=True)


@click.command(epilog="Example: webfountain mcp --store rocksdb://news")
@options.store
@options.repository
@click.option("--listen", metavar="ADDRESS", help="Serve over HTTP at HOST:PORT/mcp instead of standard input.")
@click.option("--tokens", metavar="FILE", help="Tokens with roles, one a line, as for `serve`; a file of mode 0600.")
@click.option("--host", "hosts", metavar="NAME", multiple=True, help="A host name that clients may use; repeatable.")
@click.option("--operate", is_flag=True, help="Allow a client on standard input to fetch URLs.")
def mcp(
    store: str, repository: str | None, *, listen: str | None, tokens: str | None, hosts: Sequence[str], operate: bool
) -> None:
    """Serve a collection to language models by the Model Context Protocol: search, read, changes, freshness, explain.

    The command needs the extra webfountain[mcp]. Over HTTP, a client's token decides what the client may do. Texts of
    pages are marked as data.
    """
    try:
        from webfountain.service.mcp_server import serve_http, serve_stdio  # noqa: PLC0415  an extra
    except ImportError:
        raise InputError("mcp: its packages are missing (pip install 'webfountain[mcp]')") from None
    from webfountain.service.served_store import ServedStore  # noqa: PLC0415  aiohttp, 0.3 s

    if listen is not None and address_of(listen).path:
        raise InputError(f"--listen {listen!r} is not an address (allowed: HOST:PORT)")
    if not is_shared(store) or folder_of(store) is not None:
        existing_folder(store)
    known = {} if tokens is None else read_tokens(tokens)
    if listen is not None and not address_of(listen).is_local and not known:
        raise InputError(f"--listen {listen!r}: other machines reach it, so tokens are required (--tokens FILE)")
    served = ServedStore(store_entry(store, repository=repository))
    try:
        if listen is None:
            asyncio.run(serve_stdio(served, may_operate=operate))
        else:
            asyncio.run(serve_http(served, listen, known, hosts, read_only=False))
    finally:
        served.close()
