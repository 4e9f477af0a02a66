"""The table of web pages about a collection; each row is a view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webfountain.service.operation import NoParameters
from webfountain.service.pages.change_pages import ChangesPageQuery, changes_page
from webfountain.service.pages.operator_pages import (
    DrainForm,
    NowForm,
    PolicyForm,
    ants_page,
    checks_page,
    drain_ant,
    edit_policy,
    now_page,
    plan_page,
    policy_page,
    send_now,
)
from webfountain.service.pages.overview import OverviewForm, OverviewQuery, overview, set_pause
from webfountain.service.pages.page_pages import (
    ComparePageQuery,
    LinksPageQuery,
    PageForm,
    PagePageQuery,
    act_on_page,
    compare_page,
    links_page,
    page_page,
)
from webfountain.service.pages.reports import report_page
from webfountain.service.pages.search_pages import SearchPageQuery, search_page
from webfountain.service.pages.site_pages import (
    PagesPageQuery,
    SiteForm,
    SitePageQuery,
    SitesPageQuery,
    act_on_site,
    pages_page,
    site_page,
    sites_page,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import msgspec

    from webfountain.api.collection import StoredCollection

__all__ = ["VIEWS", "View"]


class View(NamedTuple):
    """A web page about a collection. `path` is relative to the path of the collection."""

    name: str
    """Name of the template."""
    path: str
    title: str
    read: Callable[[StoredCollection, Any], Mapping[str, Any]]
    """Function that returns the values for the template, from the open collection and the query."""
    query: type[msgspec.Struct] = NoParameters
    form: type[msgspec.Struct] | None = None
    """Type of the form that operators send to the page."""
    act: Callable[[StoredCollection, Any], Mapping[str, Any]] | None = None
    """Function that carries out a submitted form and returns additional values for the template."""
    in_menu: bool = True
    is_shared: bool = False
    """True if all users share the values of the page for a few seconds, which makes automatic reloads cheap."""


VIEWS: Final = (
    View("overview", "", "Overview", overview, OverviewQuery, OverviewForm, set_pause, is_shared=True),
    View("changes", "/changes", "Changes", changes_page, ChangesPageQuery),
    View("sites", "/sites", "Sites", sites_page, SitesPageQuery),
    View("site", "/site", "Site", site_page, SitePageQuery, SiteForm, act_on_site, in_menu=False),
    View("pages", "/pages", "Pages of a site", pages_page, PagesPageQuery, in_menu=False),
    View("page", "/page", "Page", page_page, PagePageQuery, PageForm, act_on_page),
    View("compare", "/compare", "Versions of a page", compare_page, ComparePageQuery, in_menu=False),
    View("links", "/links", "Links of a page", links_page, LinksPageQuery, in_menu=False),
    View("search", "/search", "Search", search_page, SearchPageQuery),
    View("plan", "/plan", "Plan", plan_page),
    View("policy", "/policy", "Policy", policy_page, NoParameters, PolicyForm, edit_policy),
    View("now", "/now", "Now", now_page, NoParameters, NowForm, send_now),
    View("ants", "/ants", "Ants", ants_page, NoParameters, DrainForm, drain_ant, is_shared=True),
    View("checks", "/checks", "Checks", checks_page),
    View("report", "/report", "Reports", report_page),
)
