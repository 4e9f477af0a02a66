"""Settings of the service, from the command line and from a TOML file if one is given.

::

    listen = ["127.0.0.1:9411"]            # or a path: a Unix socket
    tokens = "tokens"                      # file of mode 0600: lines `operate TOKEN` or `read TOKEN`
    hosts = ["crawl.example.org"] # host names under which a proxy receives requests
    base_path = "/crawl"
    forwarded = true                       # a proxy in front sets X-Forwarded-Proto and X-Forwarded-Host
    read_only = false
    [[stores]]
    name = "news"
    url = "rocksdb:///var/lib/webfountain/news"
    repository = "/var/lib/webfountain/news/repository"
"""

from __future__ import annotations

import ipaddress
import re
import tomllib
from pathlib import Path
from typing import Final

import msgspec

from webfountain.config import DEFAULT_STORE
from webfountain.errors import InputError
from webfountain.policy.errors import explain, reason_of
from webfountain.store.locations import folder_of, require_readable, without_password

__all__ = ["DEFAULT_ADDRESS", "Address", "ServeSettings", "StoreEntry", "address_of", "read_settings", "store_entry"]

DEFAULT_ADDRESS: Final = "127.0.0.1:9411"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_BASE_PATH: Final = re.compile(r"(/[A-Za-z0-9._~-]+)*")


class StoreEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A store to serve, with the name of its collection in URLs."""

    name: str
    url: str
    repository: str | None = None


class ServeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All settings of the service."""

    stores: tuple[StoreEntry, ...] = ()
    listen: tuple[str, ...] = (DEFAULT_ADDRESS,)
    tokens: str | None = None
    hosts: tuple[str, ...] = ()
    base_path: str = ""
    forwarded: bool = False
    read_only: bool = False

    def checked(self) -> ServeSettings:
        """Check the settings and return them, with the default store if no store is given. Raise InputError if a
        setting is invalid."""
        if not self.stores:
            return msgspec.structs.replace(self, stores=(store_entry(DEFAULT_STORE),)).checked()
        names = [store.name for store in self.stores]
        for name in names:
            if _NAME.fullmatch(name) is None:
                raise InputError(
                    f"stores: the name {name!r} is not allowed (allowed: up to 64 letters, digits and . _ -)"
                )
            if names.count(name) > 1:
                raise InputError(f"stores: the name {name!r} occurs twice; name each store in the configuration file")
        for store in self.stores:
            require_readable(store.url)
        if _BASE_PATH.fullmatch(self.base_path) is None:
            raise InputError(f"base_path {self.base_path!r} is not a path (allowed: /name, without a slash at the end)")
        for text in self.listen:
            if not address_of(text).is_local and self.tokens is None:
                raise InputError(f"listen {text!r}: other machines reach it, so tokens are required (--tokens FILE)")
        return self


class Address(msgspec.Struct, frozen=True):
    """Where the service listens: host and port, or the path of a Unix socket."""

    host: str = ""
    port: int = 0
    path: str = ""

    @property
    def is_local(self) -> bool:
        return bool(self.path) or ipaddress.ip_address(self.host).is_loopback


def address_of(text: str) -> Address:
    """Parse an address of the form HOST:PORT, PORT, or a path.

    HOST is an IP address or localhost.

    Raises
    ------
    InputError
        if the text is no address.
    """
    if "/" in text:
        return Address(path=text)
    host, _, port = text.rpartition(":")
    host = {"": "127.0.0.1", "localhost": "127.0.0.1"}.get(host, host).strip("[]")
    try:
        ipaddress.ip_address(host)
        number = int(port)
        if not 0 <= number <= 65_535:
            raise ValueError(port)
    except ValueError:
        raise InputError(
            f"listen {text!r} is not an address (allowed: 127.0.0.1:9411, 9411, [::1]:9411, /path/of/socket)"
        ) from None
    return Address(host, number)


def store_entry(url: str, *, repository: str | None = None) -> StoreEntry:
    """Return a `StoreEntry` for a store URL, with a name made from the store's folder or database."""
    folder = folder_of(url)
    text = folder.resolve().name if folder is not None else re.split(r"[/?]", without_password(url).strip("/"))[-1]
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-_") or "store"
    return StoreEntry(name[:64], url, repository)


def read_settings(file: str) -> ServeSettings:
    """Read a configuration file.

    The path of the token file is relative to the configuration file.

    Raises
    ------
    InputError
        when it cannot be read, or a key is unknown, mistyped or out of range; the message names the key.
    """
    path = Path(file)
    try:
        written = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read: {reason_of(error)}") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file}: not valid TOML: {error}") from None
    try:
        found = msgspec.convert(written, ServeSettings)
    except msgspec.ValidationError as error:
        raise InputError(f"{file}: {explain(str(error), written, root=ServeSettings)}") from None
    tokens = None if found.tokens is None else str(path.parent / found.tokens)
    return msgspec.structs.replace(found, tokens=tokens)
