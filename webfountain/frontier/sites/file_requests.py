"""Files that sites need from other sites: a robots.txt or a sitemap on another host.

Place in the walk: a site returns a `FileRequest`. It goes to the site that has the file, which is active or becomes a
guest, and obeys that site's gates and robots.txt. The answer goes to all sites that wait for the URL, so one fetch
serves them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.records import Fetch, FetchResult
from webfountain.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webfountain.frontier.batch import Batch
    from webfountain.frontier.sites.site import ActiveSite
    from webfountain.frontier.sites.site_files import FileRequest
    from webfountain.frontier.sites.site_table import SiteTable

__all__ = ["FileRequests"]


class FileRequests:
    """The files that sites wait for, and the hosts that are not active yet."""

    def __init__(self, sites: SiteTable) -> None:
        self._sites = sites
        self._requesters: dict[str, list[str]] = {}  # by URL of a file: the sites that wait for it
        self.by_host: dict[str, list[FileRequest]] = {}
        """Requests by site, until the state of the site comes from the store. Then it can be a guest."""

    def __len__(self) -> int:
        """Return how many files sites wait for."""
        return len(self._requesters)

    def take_host(self, name: str) -> list[FileRequest]:
        """Return the requests that wait for a site to become a guest, once."""
        return self.by_host.pop(name, [])

    def route(self, requests: Iterable[FileRequest], batch: Batch) -> None:
        """Pass each request to the site that has the file. Deliver the requests that came back with an error."""
        for request in requests:
            if request.error is not None:
                fetch = Fetch(0, request.kind, request.url, site_of(request.url), None)
                self.deliver(FetchResult(fetch, batch.at, 0.0, error=request.error), batch)
                continue
            requesters = self._requesters.setdefault(request.url, [])
            requesters.append(request.requester)
            if len(requesters) > 1:
                continue  # Another site's request is already fetching it.
            host = site_of(request.url)
            if host in self._sites.by_name:
                self.ask(request, batch)
            else:
                self.by_host.setdefault(host, []).append(request)

    def ask(self, request: FileRequest, batch: Batch) -> None:
        """Make the active site that has the file fetch it in its turn."""
        site = self._sites.by_name[site_of(request.url)]
        self.route(site.request_file(request.kind, request.url, batch), batch)
        self._sites.note(site, batch.at)

    def deliver(self, fetched: FetchResult, batch: Batch, *, own: ActiveSite | None = None) -> None:
        """Give a file, or the error in its place, to the sites that wait for it. If none waits, give it to `own`,
        which fetched it.
        """
        url, sites = fetched.fetch.url, self._sites.by_name
        requesters = self._requesters.pop(url, [])
        if own is not None and (not requesters or own.files.robots.asking == url):
            self.route(own.answered(fetched, batch), batch)
        for name in requesters:
            site = sites.get(name)
            if site is not None and (fetched.fetch.kind == "sitemap" or site.files.robots.asking == url):
                self.route(site.answered(fetched, batch), batch)
                self._sites.note(site, batch.at)
            elif site is None and fetched.fetch.kind == "sitemap" and fetched.status == 200:
                batch.read_sitemap(fetched, of=name)
