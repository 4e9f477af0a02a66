"""Sitemap reach: the sites whose pages a sitemap may name.

By sitemaps.org a sitemap may name pages of its own site, and of a site whose robots.txt names the sitemap, because
that shows the owner's consent. Pages of other sites are ignored; otherwise a stranger could fill the queue of any
crawled site. A site and its other forms (https, ``www.``) count as one, because many sitemaps name the pages of one
form on another. Place in the walk: after a sitemap was read, before its URLs are judged.
"""

from __future__ import annotations

from webfountain.policy.site_forms import is_site_form

__all__ = ["SitemapReach"]


class SitemapReach:
    """The reach of one sitemap: `file_site` is the site of the file, `named_by` the site whose robots.txt names it."""

    __slots__ = ("_known", "_speaks_for")

    def __init__(self, file_site: str, *, named_by: str) -> None:
        self._speaks_for = (file_site, named_by)
        self._known = dict.fromkeys(self._speaks_for, True)  # a sitemap may name many sites, each many times

    def contains(self, site: str) -> bool:
        """Return whether the sitemap may name pages of a site."""
        found = self._known.get(site)
        if found is None:
            forms = (is_site_form(site, of=own) or is_site_form(own, of=site) for own in self._speaks_for)
            found = self._known[site] = any(forms)
        return found
