"""The command `mcp`: a collection as tools for language models."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from webfountain.commands import options
from webfountain.errors import InputError
from webfountain.service.roles import read_tokens
from webfountain.service.settings import address_of, store_entry

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["mcp"]


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

    It needs the extra webfountain[mcp]. Over HTTP, tokens give roles; texts of pages are marked as data.
    """
    try:
        from webfountain.service.mcp_server import serve_http, serve_stdio  # noqa: PLC0415  an extra
    except ImportError:
        raise InputError("mcp: its packages are missing (pip install 'webfountain[mcp]')") from None
    from webfountain.service.served_store import ServedStore  # noqa: PLC0415  aiohttp, 0.3 s

    if listen is not None and address_of(listen).path:
        raise InputError(f"--listen {listen!r}: is not an address (allowed: HOST:PORT)")
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
