"""The command `policy check`: check policy files, and show what an edit would change in a store."""

from __future__ import annotations

import sys
from typing import Any

import click

from webfountain.commands import options, printing
from webfountain.errors import PolicyError
from webfountain.policy.collection_file import read_collection
from webfountain.report.plurals import counted
from webfountain.report.policy_check import described, effect_on
from webfountain.report.store_reading import link_log, reading

__all__ = ["check_files", "policy"]


@click.group()
def policy() -> None:
    """Check policy files."""


@policy.command("check", epilog="Example: webfountain policy check mine.toml --against rocksdb://.webfountain")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--against", metavar="STORE", help="Show which known URLs of this store the file would drop or accept.")
@options.as_json
def check_files(files: tuple[str, ...], against: str | None, as_json: bool) -> int:
    """Check policy FILEs. If a file is wrong, one line names file, key and value, and the exit status is 2.

    With --against, show what an edited file would drop or accept before it is used.
    """
    found: list[dict[str, Any]] = []
    wrong = 0
    for file in files:
        try:
            collection = read_collection(file)
            found.append({"file": file, **described(collection)})
            if against is not None:
                with reading(against) as store:
                    found[-1]["effect"] = effect_on(store, collection, links=link_log(collection, against))
        except PolicyError as error:
            wrong += 1
            print(f"webfountain: {error}", file=sys.stderr)
            found.append({"file": file, "error": str(error)})
    if as_json:
        printing.print_json(found)
    else:
        _print_policy(found)
    return 2 if wrong else 0


def _print_policy(found: list[dict[str, Any]]) -> None:
    for each in found:
        if "error" not in each:
            collection, cycle, refused = each["collection"], each["cycle"], each["seeds_refused"]
            if refused:
                print(
                    f"webfountain: {each['file']}: warning: its rules refuse {refused:,} of "
                    f"{counted(collection['seeds'], 'seed')}",
                    file=sys.stderr,
                )
            for note in each["notes"]:
                print(f"webfountain: {each['file']}: note: {note}", file=sys.stderr)
            fine = "nothing to crawl" if refused == collection["seeds"] else "fine"
            print(
                f"{each['file']}: {fine}: collection {collection['name']!r}, {counted(collection['seeds'], 'seed')}, "
                f"scope {collection['scope']}, {counted(cycle['periods'], 'period')} of {cycle['period']}"
            )
            for name, table in each["policies"].items():
                if table["extends"] is not None:
                    print(f"  policies.{name} extends {table['extends']}")
            for number, spelled in enumerate(each["rules"]):
                print(f"  rule[{number}]: {spelled}")
        if (effect := each.get("effect")) is not None:
            _print_effect(effect)


def _print_effect(effect: dict[str, Any]) -> None:
    dropped = sum(effect["dropped"].values())
    reasons = ", ".join(f"{reason} {many:,}" for reason, many in effect["dropped"].items())
    print(
        f"  of {counted(effect['known'], 'known URL')} {dropped:,} would be dropped{f' ({reasons})' if reasons else ''}"
    )
    for url in effect["sample_dropped"]:
        print(f"    - {url}")
    moves = ", ".join(f"{move} {many:,}" for move, many in effect["moved"].items())
    print(f"  {sum(effect['moved'].values()):,} would move to another policy{f' ({moves})' if moves else ''}")
    for url in effect["sample_moved"]:
        print(f"    ~ {url}")
    if effect["retrusted"]:
        print(f"  {effect['retrusted']:,} would keep their policy but get another trust")
    print(f"  {effect['taken']:,} that were refused would be accepted again")
    for url in effect["sample_taken"]:
        print(f"    + {url}")
    if effect["followed"]:
        print(f"  {effect['followed']:,} refused links would be accepted as soon as the pages with these links change")
    for url in effect["sample_followed"]:
        print(f"    + {url}")
