"""The table of pages of a collection."""

from __future__ import annotations

from typing import Final

from webfountain.service.operation import NoParameters
from webfountain.service.pages.change_pages import ChangesPageQuery, changes_page
from webfountain.service.pages.machine_pages import DrainForm, ants_page, checks_page, drain_ant
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
from webfountain.service.pages.steering_pages import (
    NowForm,
    PolicyForm,
    edit_policy,
    now_page,
    plan_page,
    policy_page,
    send_now,
)
from webfountain.service.pages.view import View

__all__ = ["VIEWS"]

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
