"""A test file stands where its module stands, with the same name: tests/ROOM/test_X.py tests webfountain/ROOM/X.py.

A scenario shows what several modules do together and is named after what happens. Scenarios are listed here, so that
a file whose module was renamed or split cannot pass for one (`test_house`).
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["SCENARIOS", "files_of_tests", "has_module"]

TESTS = Path(__file__).resolve().parent
PACKAGE = TESTS.parent / "webfountain"
ROOMS = {
    "acceptance": "whole crawls through the command line",
    "deploy": "the files in deploy/",
    "servers": "the servers that tests crawl",
}
"""Folders of scenarios alone -> what these show."""
SCENARIOS: dict[str, tuple[str, ...]] = {
    "rules of the code, the documents and the tests": (
        "test_benchmarks",
        "test_dependencies",
        "test_documented_commands",
        "test_documents",
        "test_floors",
        "test_house",
        "test_names",
        "frontier/sites/test_ownership",
        "policy/test_policies_2006",
        "policy/test_worked_example",
        "service/test_documents_examples",
        "service/test_no_scan",
        "service/test_schema",
    ),
    "commands as a user meets them": (
        "test_arguments",
        "test_check_many_ants",
        "test_damaged_files",
        "test_file_modes",
        "test_installed",
        "test_mistakes",
        "crawl/test_commands",
        "crawl/test_requests_by_url",
    ),
    "projects of others, run as they run them": (
        "crawl/test_asked_by_authors",
        "crawl/test_at_home",
        "crawl/test_beside",
        "crawl/test_from_scrapy_redis",
        "crawl/test_proxy",
        "crawl/test_recrawl",
        "crawl/test_refusals",
        "crawl/test_robots_of_projects",
        "crawl/test_scrapys_handler_tests",
        "crawl/test_scrapys_own_tests",
        "crawl/test_survival",
        "crawl/test_ten_projects",
    ),
    "hostile servers, pages and clients": (
        "crawl/test_hostile",
        "crawl/test_hostile_crawl",
        "crawl/test_hostile_stop",
        "crawl/test_hostile_texts",
        "crawl/test_suspects",
        "duplicates/test_copied_site",
        "service/test_refusals",
        "policy/test_spam_farm",
        "ranking/test_link_farm",
    ),
    "our parts beside another implementation, or on real traces": (
        "core/test_forecast_of_cycles",
        "core/test_freshness",
        "download/test_against_httptools",
        "formats/test_feeds",
    ),
    "a crawl without Scrapy: frontier, store worker and store": (
        "duplicates/test_edited_rules",
        "frontier/test_broken",
        "frontier/test_clock_ahead",
        "frontier/test_copies",
        "frontier/test_due_times",
        "frontier/test_policies",
        "frontier/test_policy_edits",
        "frontier/test_policy_lineage",
        "frontier/test_policy_scenarios",
        "frontier/test_redirect_chains",
        "frontier/test_second_address",
        "frontier/test_slow_readers",
        "frontier/pages/test_replacement",
        "frontier/planning/test_budget",
        "frontier/planning/test_goal",
        "frontier/planning/test_urgency_in_a_crawl",
        "frontier/planning/test_urgent_pages_in_any_order",
        "frontier/sites/test_congestion",
        "frontier/sites/test_guests",
        "frontier/sites/test_immediate",
        "frontier/sites/test_leases",
        "frontier/sites/test_stranded",
        "frontier/sites/test_turns",
        "frontier/sites/test_unreachable",
        "frontier/test_pausing",
        "service/test_beside_a_crawl",
        "service/pages/test_in_chromium",
    ),
    "several ants on one store": (
        "frontier/cluster/test_disorder",
        "frontier/cluster/test_round_trips",
        "frontier/cluster/test_set_backs",
        "frontier/cluster/test_split_sites",
    ),
    "all stores alike, and stores through kills and faults": (
        "ranking/test_damage",
        "ranking/test_rows_after_kills",
        "store/test_changes_killed",
        "store/shared/test_set_back_commands",
        "store/test_export_beside",
        "store/test_idle_ants",
        "store/test_import_killed",
        "store/test_machine",
        "store/test_one_frontier",
        "store/test_provenance",
        "api/test_shared_store",
        "service/test_server_away",
        "service/test_stores_that_change",
        "store/test_shared_faults",
        "store/test_step_text",
    ),
}
"""What scenarios show -> their files."""


def files_of_tests() -> list[str]:
    found = (path.relative_to(TESTS).with_suffix("").as_posix() for path in TESTS.rglob("test_*.py"))
    return sorted(name for name in found if name.partition("/")[0] not in ROOMS)


def has_module(name: str) -> bool:
    room, _, file = name.rpartition("/")
    return (PACKAGE / room / f"{file.removeprefix('test_')}.py").is_file()
