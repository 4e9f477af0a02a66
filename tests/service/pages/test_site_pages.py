"""The list of sites: its filter holds in each order, and its parts make a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from tests.service.test_no_scan import filled
from webfountain.api.opening import open_stored
from webfountain.service.pages.reports import ReportQuery, report_part
from webfountain.service.pages.site_pages import SitesPageQuery, sites_page
from webfountain.store.site_orders import SITE_ORDERS

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.store.answers import SiteOrder


@pytest.mark.parametrize("order", SITE_ORDERS)
def test_the_filter_of_sites_holds_in_each_order_in_the_page_and_in_its_table(tmp_path: Path, order: SiteOrder) -> None:
    names = {f"http://site-{number}.example" for number in range(230)}
    collection = open_stored(filled(tmp_path / "store", sites=230, pages=1))
    expected_of: dict[Literal["", "failing", "waiting"], set[str]] = {"waiting": names, "failing": set(), "": names}
    for only, expected in expected_of.items():
        shown: list[str] = []
        after: str | None = ""
        while after is not None:
            values = sites_page(collection, SitesPageQuery(after=after, only=only, sort=order))
            shown += [row.site.site for row in values["rows"]]
            after = values["next"]
        assert len(shown) == len(expected)
        assert set(shown) == expected
        rows, _ = report_part(collection, "sites", ReportQuery(only=only, sort=order), "")
        assert {row["site"] for row in rows} == expected
    collection.close()
