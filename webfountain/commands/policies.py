"""policy check: what a policy file says, or the one line that is wrong with it."""

from __future__ import annotations

import sys
from typing import Any

import click

from webfountain.commands import options
from webfountain.errors import PolicyError
from webfountain.policy.files import describe, read_collection

__all__ = ["policy"]


@click.group()
def policy() -> None:
    """Check policy files."""


@policy.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@options.as_json
def check(files: tuple[str, ...], as_json: bool) -> int:
    """Check policy FILEs: each is fine, or one line names file, key and value and the exit status is 2."""
    found: list[dict[str, Any]] = []
    wrong = 0
    for file in files:
        try:
            found.append({"file": file, **describe(read_collection(file))})
        except PolicyError as error:
            wrong += 1
            print(f"webfountain: {error}", file=sys.stderr)
            found.append({"file": file, "error": str(error)})
    if as_json:
        options.print_json(found)
    else:
        _print(found)
    return 2 if wrong else 0


def _print(found: list[dict[str, Any]]) -> None:
    for each in found:
        if "error" not in each:
            collection, cycle = each["collection"], each["cycle"]
            print(
                f"{each['file']}: fine: collection {collection['name']!r}, {collection['seeds']:,} seeds, "
                f"scope {collection['scope']}, {cycle['periods']} periods of {cycle['period']}"
            )
