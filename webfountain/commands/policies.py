"""policy check: what a policy file says, or the one line that is wrong with it."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import click
import msgspec

from webfountain.commands import options
from webfountain.errors import PolicyError
from webfountain.frontier.seeds import seed_links
from webfountain.policy.files import describe, read_collection
from webfountain.policy.judge import Judge
from webfountain.report.policy_effect import policy_effect

if TYPE_CHECKING:
    from webfountain.policy.files import Collection
    from webfountain.policy.judge import Reason

__all__ = ["policy"]


@click.group()
def policy() -> None:
    """Check policy files."""


@policy.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--against", metavar="STORE", help="Tell which known URLs of this store the file would drop or take.")
@options.as_json
def check(files: tuple[str, ...], against: str | None, as_json: bool) -> int:
    """Check policy FILEs: each is fine, or one line names file, key and value and the exit status is 2.

    Example, before an edited file is used: webfountain policy check mine.toml --against rocksdb://.webfountain
    """
    found: list[dict[str, Any]] = []
    wrong = 0
    for file in files:
        try:
            collection = read_collection(file)
            found.append({"file": file, **describe(collection), "seeds_refused": _refused_seeds(collection)})
            if against is not None:
                found[-1]["effect"] = _effect(collection, against)
        except PolicyError as error:
            wrong += 1
            print(f"webfountain: {error}", file=sys.stderr)
            found.append({"file": file, "error": str(error)})
    if as_json:
        options.print_json(found)
    else:
        _print(found)
    return 2 if wrong else 0


def _refused_seeds(collection: Collection) -> int:
    """How many of its own seeds the file refuses; a crawl of none but those ends at once."""
    refused: dict[Reason, tuple[int, str]] = {}
    for _ in seed_links(collection, Judge(collection, year=time.gmtime().tm_year), refused):
        pass
    return sum(many for many, _ in refused.values())


def _effect(collection: Collection, store_url: str) -> dict[str, Any]:
    """What the file would do to a store that exists."""
    judge = Judge(collection, year=time.gmtime().tm_year)
    with options.reading(store_url) as store:
        effect: dict[str, Any] = msgspec.to_builtins(policy_effect(judge, (record for _, record in store.pages())))
    return effect


def _print(found: list[dict[str, Any]]) -> None:
    for each in found:
        if "error" not in each:
            collection, cycle, refused = each["collection"], each["cycle"], each["seeds_refused"]
            if refused:
                print(
                    f"webfountain: {each['file']}: warning: its rules refuse {refused:,} of its "
                    f"{collection['seeds']:,} seeds",
                    file=sys.stderr,
                )
            fine = "nothing to crawl" if refused == collection["seeds"] else "fine"
            print(
                f"{each['file']}: {fine}: collection {collection['name']!r}, {collection['seeds']:,} seeds, "
                f"scope {collection['scope']}, {cycle['periods']} periods of {cycle['period']}"
            )
        if (effect := each.get("effect")) is not None:
            _print_effect(effect)


def _print_effect(effect: dict[str, Any]) -> None:
    dropped = sum(effect["dropped"].values())
    reasons = ", ".join(f"{reason} {many:,}" for reason, many in effect["dropped"].items())
    print(f"  of {effect['known']:,} known URLs {dropped:,} would be dropped{f' ({reasons})' if reasons else ''}")
    for url in effect["sample_dropped"]:
        print(f"    - {url}")
    print(f"  of those refused before {effect['taken']:,} would be taken in again")
    for url in effect["sample_taken"]:
        print(f"    + {url}")
