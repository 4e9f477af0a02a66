"""Start scrapyd with protection, because scrapyd runs any code that it receives.

deploy/scrapyd.conf names `application` in this module. Scrapyd does not start without credentials. Requests from web
pages of other origins are refused. Scrapyd's jobs do not inherit the password.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

import scrapyd.app
from twisted.application.service import IServiceCollection
from twisted.web import http, server

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["application"]

_USER: Final = "SCRAPYD_USERNAME"
_PASSWORD: Final = "SCRAPYD_PASSWORD"  # noqa: S105  the name of a variable


def application(config: Any) -> Any:
    """Return scrapyd's application, a Twisted application.

    Parameters
    ----------
    config : scrapyd's own configuration

    Raises
    ------
    SystemExit
        if neither the environment nor the configuration names a user and a password.
    """
    user = os.environ.get(_USER) or config.get("username", "")
    password = os.environ.get(_PASSWORD) or config.get("password", "")
    if not user or not password:
        raise SystemExit(
            f"scrapyd: not started, because anyone who reaches its port can run code; set {_USER} and "
            f"{_PASSWORD} in its "
            "environment"
        )
    app = scrapyd.app.application(config)
    os.environ.pop(_PASSWORD, None)
    for service in cast("Iterable[Any]", IServiceCollection(app)):
        site = getattr(service, "args", (None, None))[1:2]
        if site and isinstance(site[0], server.Site):
            site[0].requestFactory = _Request
    return app


class _Request(server.Request):
    """A request to scrapyd. If a web page of another origin sent the request, the answer is an error."""

    def process(self) -> None:
        origin = self.getHeader("origin")
        if origin is not None and urlsplit(origin).netloc != (self.getHeader("host") or ""):
            self.setResponseCode(http.FORBIDDEN)
            self.finish()  # type: ignore[no-untyped-call]
            return
        super().process()  # type: ignore[no-untyped-call]

    def setHeader(self, name: Any, value: Any) -> None:  # noqa: N802  Twisted's name
        """Set a response header, but ignore scrapyd's header that lets web pages of other origins read the answer."""
        text = name.decode("latin-1") if isinstance(name, bytes) else name
        if not text.lower().startswith("access-control-"):
            super().setHeader(name, value)  # type: ignore[no-untyped-call]
