"""The values for the pages of the operator: plan, policy file, URLs to fetch now, crawling processes, disks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from webfountain.errors import InputError, PolicyError
from webfountain.history.live import STALE_S
from webfountain.report.plurals import counted
from webfountain.service.answers import MAX_POLICY
from webfountain.service.pages.charts import Series, lines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webfountain.api.collection import StoredCollection
    from webfountain.service.operation import NoParameters

__all__ = [
    "DrainForm",
    "NowForm",
    "PolicyForm",
    "ants_page",
    "checks_page",
    "drain_ant",
    "edit_policy",
    "now_page",
    "plan_page",
    "policy_page",
    "send_now",
]

_DISK_SPAN_S: Final = 30 * 86400.0
"""Time span of the chart of disk sizes, in seconds."""


class PolicyForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The form that sends an edited policy file."""

    text: Annotated[str, Meta(max_length=2 * MAX_POLICY)]
    digest: Annotated[str, Meta(max_length=64)]
    act: Literal["check", "try", "write"]


class NowForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The form in which an operator enters URLs that the crawl should fetch at once."""

    urls: Annotated[str, Meta(max_length=900_000)]
    act: Literal["check", "send"]


class DrainForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The button that makes a crawling process give up its sites and end."""

    drain: Annotated[str, Meta(min_length=1, max_length=200)]
    sure: Literal["yes"]


def plan_page(collection: StoredCollection, _: NoParameters) -> Mapping[str, Any]:
    status = collection.status()
    plan = collection.details.plan(at=status.at).plan
    return {"status": status, "plan": plan, "chart": "" if plan is None else _chart(plan)}


def policy_page(collection: StoredCollection, _: NoParameters) -> Mapping[str, Any]:
    """Return the values for the page with the policy file."""
    found = collection.details.policy()
    meaning = collection.check_policy(found.text) if found.path else None
    return {"policy": found, "meaning": meaning, "text": found.text, "answer": None, "cost": None, "act": ""}


def edit_policy(collection: StoredCollection, form: PolicyForm) -> Mapping[str, Any]:
    """Check an edited policy file, show its effect on the collection, or write the file."""
    text = form.text.replace("\r\n", "\n")
    if len(text) > MAX_POLICY:
        raise InputError(f"the file has {len(text):,} characters (allowed here: {MAX_POLICY:,}); use `policy check`")
    more: dict[str, Any] = {"text": text, "act": form.act, "answer": None, "cost": None}
    if form.act == "write":
        try:
            collection.details.write_policy(text, form.digest)
        except (InputError, PolicyError) as error:
            return more | {"problem": f"The file was not written: {error}"}
        return {
            "done": "The file is written. A running crawl adopts it within seconds. The previous version is beside it."
        }
    answer = collection.check_policy(text, against=form.act == "try")
    return more | {"answer": answer, "cost": None if answer.effect is None else _cost(collection, answer.effect)}


def _cost(collection: StoredCollection, effect: Mapping[str, Any]) -> Mapping[str, float | None]:
    """Estimate how many pages and fetches an edit of the policy file adds or saves in the whole collection."""
    status = collection.status()
    scale = status.known / max(effect["known"], 1)
    dropped, taken = sum(effect["dropped"].values()) * scale, effect["taken"] * scale
    held = status.pages.get("crawled", 0)
    repeats = (status.fetches - status.first_fetches) / max(status.at - status.since, 1.0) * 86400.0
    return {
        "dropped": dropped,
        "taken": taken,
        "first_s": taken / status.pages_per_second if status.pages_per_second else None,
        "fewer_a_day": min(dropped / held, 1.0) * repeats if held else 0.0,
    }


def now_page(collection: StoredCollection, _: NoParameters) -> Mapping[str, Any]:
    """Return the values for the page on which an operator enters URLs that the crawl should fetch at once."""
    live = collection.live()
    return {"urls": "", "judged": None, "immediate": sum(each.immediate for each in live)}


def send_now(collection: StoredCollection, form: NowForm) -> Mapping[str, Any]:
    """Show what would happen to each URL of the form, or send the URLs to the crawl."""
    urls = [line.strip() for line in form.urls.splitlines() if line.strip()]
    if not urls:
        return {"problem": "Enter at least one URL."}
    if form.act == "check":
        at = collection.status().at
        return {"urls": form.urls, "judged": collection.details.judge(urls, at=at)}
    answer = collection.now(urls)
    sent = counted(len(answer.accepted), "URL") + (" was" if len(answer.accepted) == 1 else " were")
    return {
        "done": f"{sent} sent. Each is fetched as soon as politeness allows.",
        "sent": answer,
    }


def drain_ant(collection: StoredCollection, form: DrainForm) -> Mapping[str, Any]:
    """Make a crawling process give up its sites and end."""
    collection.drain(form.drain)
    return {"done": f"The process {form.drain} gives up its sites and ends."}


def ants_page(collection: StoredCollection, _: NoParameters) -> Mapping[str, Any]:
    """Return the values for the page about the crawling processes."""
    status = collection.status()
    return {
        "status": status,
        "live": [(each, status.at - each.at < STALE_S) for each in collection.live()],
    }


def checks_page(collection: StoredCollection, _: NoParameters) -> Mapping[str, Any]:
    """Return the values for the page about disks and damage."""
    status = collection.status()
    hours = collection.history("hour", since=status.at - _DISK_SPAN_S)
    minutes = collection.history(since=status.at - 3600.0)
    times = [each.at for each in hours]
    series = [
        Series("store", [each.store_bytes for each in hours]),
        Series("copies", [each.repository_bytes for each in hours]),
    ]
    samples = minutes or hours
    newest = samples[-1] if samples else None
    return {
        "status": status,
        "newest": newest,
        "last": collection.details.last_check(),
        "hours": hours[-48:],
        "chart": lines("Bytes on disk over time", times, series),
    }


def _chart(plan: Mapping[str, Any]) -> object:
    periods = plan["by_period"]
    times = [plan["start"] + number * plan["period_s"] for number in range(len(periods))]
    done = plan["period"]
    series = [
        Series("known pages, planned", [each["recrawl"] for each in periods]),
        Series("known pages, done", [each["recrawled"] if each["period"] <= done else None for each in periods]),
        Series("new pages, planned", [each["new"] for each in periods]),
        Series("new pages, done", [each["crawled_new"] if each["period"] <= done else None for each in periods]),
    ]
    return lines("Planned and done fetches by period", times, series)
