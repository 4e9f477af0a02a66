"""Roles of clients: readers may read, operators may also send requests to the crawl.

On loopback and on a Unix socket, every client may read. Operators, and readers on other machines, need a token or a
session. A token is in the token file and is sent as ``Authorization: Bearer TOKEN``. At its start, the service prints a
login URL that opens one session for an operator. Tokens are compared in constant time and never shown.
"""

from __future__ import annotations

import hmac
import secrets
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from webfountain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["COOKIE", "SESSION_S", "Role", "Roles", "read_tokens"]

Role = Literal["read", "operate"]
COOKIE: Final = "webfountain_session"
SESSION_S: Final = 12 * 3600
LOGIN_S: Final = 3600
"""How long the printed login URL is valid, in seconds."""
_SESSIONS: Final = 100
_SHORTEST: Final = 16


class Roles:
    """The tokens and sessions of a service. `tokens` maps tokens to roles; `clock` returns monotonic seconds."""

    def __init__(
        self,
        tokens: Mapping[str, Role],
        *,
        reads_freely: bool,
        read_only: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tokens = [(token.encode(), role) for token, role in tokens.items()]
        self._reads_freely = reads_freely
        self._read_only = read_only
        self._clock = clock
        self._logins: dict[str, float] = {}
        self._sessions: dict[str, float] = {}

    @property
    def read_only(self) -> bool:
        """Return whether the service refuses all operator requests."""
        return self._read_only

    def role_of_token(self, token: str) -> Role | None:
        """Return the role of a token, or None for an unknown token."""
        given, found = token.encode(errors="surrogateescape"), None
        for known, role in self._tokens:
            if hmac.compare_digest(known, given):
                found = role
        return found

    def role_of_session(self, session: str) -> Role | None:
        """Return the role of a session, or None for an unknown or expired session."""
        until = next((until for known, until in self._sessions.items() if _same(known, session)), None)
        return None if until is None or until < self._clock() else "operate"

    def role_without_token(self, *, is_local: bool) -> Role | None:
        """Return the role of a client without token and session. `is_local` is True if the client is on this
        machine."""
        return "read" if is_local and self._reads_freely else None

    def new_login(self) -> str:
        """Return a login code that opens one session."""
        code = secrets.token_urlsafe(32)
        self._logins[code] = self._clock() + LOGIN_S
        return code

    def open_session(self, code: str) -> str | None:
        """Return a new session for a login code, which can be used only once. Return None for an unknown or expired
        code.
        """
        known = next((each for each in self._logins if _same(each, code)), None)
        if known is None or self._logins.pop(known) < self._clock():
            return None
        session = secrets.token_urlsafe(32)
        while len(self._sessions) >= _SESSIONS:
            del self._sessions[min(self._sessions, key=lambda each: self._sessions[each])]
        self._sessions[session] = self._clock() + SESSION_S
        return session


def read_tokens(file: str) -> dict[str, Role]:
    """Read a token file: lines ``operate TOKEN`` and ``read TOKEN``.

    The file must have mode 0600, so that only its owner can read the tokens.

    Raises
    ------
    InputError
        when it cannot be read, other users may read it, or a line is invalid. The message shows no token.
    """
    path, found = Path(file), dict[str, Role]()
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputError(f"--tokens {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"--tokens {file} is not a text file") from None
    if mode & 0o077:
        raise InputError(f"--tokens {file}: other users may read it (mode {mode:o}; allowed: 600)")
    for number, line in enumerate(lines, 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if len(words) != 2 or words[0] not in ("read", "operate") or len(words[1]) < _SHORTEST:
            raise InputError(
                f"--tokens {file}: line {number} is not a token (allowed: `read TOKEN` or `operate TOKEN`, "
                f"a token of at least {_SHORTEST} characters)"
            )
        found[words[1]] = "operate" if words[0] == "operate" else "read"
    if not found:
        raise InputError(f"--tokens {file} contains no token")
    return found


def _same(known: str, given: str) -> bool:
    return hmac.compare_digest(known.encode(), given.encode(errors="surrogateescape"))
