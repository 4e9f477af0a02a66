"""The command `check`: test a store and its copies for damage; with --repair, repair what can be repaired."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from webfountain.clock import SystemClock
from webfountain.commands import options, printing
from webfountain.errors import InputError, StoreError, StoreHeld, StoreVersion, WebfountainError
from webfountain.report.last_check import MAX_LISTED, CheckResult, keep_check
from webfountain.report.plurals import counted
from webfountain.report.store_reading import copies, existing_folder, places_of, reading, repository_folder
from webfountain.report.wholeness import examine_store, mend_copies
from webfountain.store.locations import folder_of, is_in_use, is_shared, without_password
from webfountain.store.opening import open_store, read_every_entry, recount, salvage
from webfountain.store.shared_contract import has_ants
from webfountain.terminal_text import shown

if TYPE_CHECKING:
    from webfountain.report.wholeness import DerivedFiles, DerivedReport, Wholeness

__all__ = ["check"]

_SHOWN = 10


@click.command(epilog="Example: webfountain check --repair")
@options.store
@options.repository
@click.option(
    "--repair", is_flag=True, help="Correct the counts, make pages without a copy due, rebuild a damaged store."
)
@options.as_json
def check(store: str, repository: str | None, repair: bool, as_json: bool) -> int:
    """Check a store and its copies for damage. The exit status is 0 if there is no damage or all of it was repaired,
    else 1.

    Every entry of the store and every copy is read. A crawl may run at the same time, but not with --repair.
    """
    folder = None if is_shared(store) else existing_folder(store)
    if folder is not None and not any((folder / part).exists() for part in ("db", "store-card", "repository")):
        raise InputError(f"{folder}: there is no store here; a crawl creates one")
    if repair and _is_crawled(store, folder):
        raise InputError(f"--store {without_password(store)!r}: a crawl has the store open; stop it first, then repair")
    begin = SystemClock().now()
    document: dict[str, Any] = {"store": without_password(store), "damage": None, "entries": None}
    try:
        if folder is not None:
            document["entries"] = read_every_entry(folder)
        found = _examine(store, repository)
        files = _derived_files(store, repository)
        derived = files.examine()
    except StoreVersion:
        raise  # undamaged, but written by another version
    except StoreError as error:
        if repair and folder is not None and not isinstance(error, StoreHeld):
            status = _salvage(store, folder, repository, error, as_json=as_json)
            _keep(store, _unreadable(error, begin, mended=True))
            return status
        document["damage"] = str(error)
        _keep(store, _unreadable(error, begin, mended=False))
        printing.print_json({**document, "whole": False}) if as_json else _print_damage(error)
        return 1
    is_whole = found.is_whole and not derived.damaged
    mended = repair and not is_whole
    if mended:
        _mend(store, found)
        files.examine(mend_at=SystemClock().now())
    beside = _is_crawled(store, folder)
    _keep(store, _result(found, derived, begin, mended=mended, beside=beside))
    if as_json:
        examined = {**msgspec.to_builtins(found), "derived": derived._asdict()}
        printing.print_json({**document, "whole": is_whole, "mended": mended, **examined})
    else:
        _print(found, entries=document["entries"], mended=mended)
        _print_derived(derived, mended=mended)
    return 0 if is_whole or mended else 1


def _unreadable(error: StoreError, begin: float, *, mended: bool) -> CheckResult:
    at = SystemClock().now()
    return CheckResult(at, at - begin, whole=False, mended=mended, damage=str(error))


def _result(found: Wholeness, derived: DerivedReport, begin: float, *, mended: bool, beside: bool) -> CheckResult:
    # During a crawl the counts change while they are compared; this is not damage.
    counts = [] if beside else [f"{what}: {before:,} stored, {there:,} found" for what, before, there in found.counts]
    lost = [f"{each.url}: {each.why}" for each in found.lost]
    lines = [line for part in (counts, lost, derived.damaged) for line in part[:MAX_LISTED]]
    at = SystemClock().now()
    return CheckResult(
        at, at - begin, whole=not (counts or lost or derived.damaged), mended=mended, beside=beside, pages=found.pages,
        sites=found.sites, copies=found.copies, wrong_counts=len(counts), lost_copies=len(lost),
        damaged_files=len(derived.damaged), examples=lines[:MAX_LISTED],
    )  # fmt: skip


def _keep(store: str, result: CheckResult) -> None:
    """Record the result of the check, so that the service can show it. If the result cannot be stored, print a
    warning."""
    try:
        if folder_of(store) is not None:
            keep_check(None, store, result)
        else:
            with reading(store) as opened:
                keep_check(opened, store, result)
    except (OSError, WebfountainError) as error:
        print(f"webfountain: the result cannot be stored for the service: {error}", file=sys.stderr)


def _derived_files(store: str, repository: str | None) -> DerivedFiles:
    """Return the paths of the derived files, such as the link log and the scores."""
    from webfountain.report import explain as explaining  # noqa: PLC0415  numpy, 0.1 s
    from webfountain.report.wholeness import DerivedFiles  # noqa: PLC0415

    copies = None if repository is None and is_shared(store) else repository_folder(store, repository)
    home = folder_of(store) or copies or Path()
    with reading(store) as opened:
        try:
            links = explaining.collection_of(opened, None).ranking.links
        except WebfountainError:  # no crawl has stored its collection there
            links = None
    return DerivedFiles(home, links or str(home / "links"), copies if copies is not None and copies.is_dir() else None)


def _print_derived(derived: DerivedReport, *, mended: bool) -> None:
    if derived.damaged:
        then = "moved aside; the next crawl makes new ones" if mended else "`--repair` moves them aside"
        print(f"derived damaged: {counted(len(derived.damaged), 'file')}; {then}")
        for line in derived.damaged[:_SHOWN]:
            print(f"          {shown(line)}")
    elif derived.present:
        print(f"derived whole: {', '.join(derived.present)}")


def _salvage(store: str, folder: Path, repository: str | None, error: StoreError, *, as_json: bool) -> int:
    """Rebuild a damaged store from its readable records and from the copies."""
    from webfountain.report.wholeness import discover_copies  # noqa: PLC0415

    end = salvage(folder)
    copies = repository_folder(store, repository)
    with contextlib.closing(open_store(store, collection=None, period_s=None)) as opened:
        found = discover_copies(opened, copies, at=SystemClock().now())
    if as_json:
        kept = {"pages": end.pages, "sites": end.sites, "found_again": found}
        printing.print_json({"store": store, "damage": str(error), "whole": False, "mended": True, **kept})
    else:
        print(f"webfountain: {error}", file=sys.stderr)
        print(f"store   rebuilt from the readable part: {counted(end.pages, 'URL')} on {counted(end.sites, 'site')}")
        print(
            f"        {found:,} more were found by their copies; all are fetched again, and the seeds lead to the rest"
        )
        print(f"        the damaged files are in {folder}/db.damaged-*; delete them when you no longer need them")
    return 0


def _examine(store: str, repository: str | None) -> Wholeness:
    """Open the store and its copies for reading, and check them. If no repository is known, check only the store."""
    is_known = repository is not None or folder_of(store) is not None
    has_copies = is_known and repository_folder(store, repository).is_dir()
    with reading(store) as opened, contextlib.ExitStack() as stack:
        kept = stack.enter_context(copies(store, repository)) if has_copies else None
        beside = has_ants(opened.claims, at=SystemClock().now())
        return examine_store(opened, kept, progress=_progress, places=places_of(opened), beside=beside)


def _is_crawled(store: str, folder: Path | None) -> bool:
    """Return whether a crawl has a store open. For a store on a server, heartbeats show whether a crawl runs."""
    if folder is not None:
        return is_in_use(folder)
    with reading(store) as opened:
        return has_ants(opened.claims, at=SystemClock().now())


def _mend(store: str, found: Wholeness) -> None:
    """Repair the copies before the counts, because repairing a copy changes the counts."""
    if found.lost:
        with contextlib.closing(open_store(store, collection=None, period_s=None)) as opened:
            mend_copies(opened, found.lost, at=SystemClock().now())
    if found.counts:
        recount(store)


def _progress(pages: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{counted(pages, 'page')}", end="\r", file=sys.stderr, flush=True)


def _print_damage(error: StoreError) -> None:
    print(f"webfountain: {error}", file=sys.stderr)
    print("store   damaged: restore a backup of its folder, or rebuild it from the readable part with `--repair`")


def _print(found: Wholeness, *, entries: int | None, mended: bool) -> None:
    read = "" if entries is None else f"{counted(entries, 'entry')} read, "
    print(f"store   whole: {read}{counted(found.pages, 'URL')} on {counted(found.sites, 'site')}")
    if not found.is_compared:
        print("counts  not compared, because a crawl is changing them")
    elif not found.counts:
        print("counts  whole")
    else:
        print(f"counts  {'corrected' if mended else 'wrong'}: {len(found.counts):,} differ")
        for what, before, there in found.counts[:_SHOWN]:
            print(f"          {what}: {before:,} stored, {there:,} found")
    if not found.lost:
        read_here = found.copies - sum(many for _, many in found.elsewhere.values())
        print(f"copies  whole: {read_here:,} read")
    else:
        then = "their pages are due now" if mended else "`--repair` makes their pages due"
        print(f"copies  {len(found.lost):,} of {found.copies:,} gone or damaged; {then}")
        for each in found.lost[:_SHOWN]:
            print(f"          {each.url}: {each.why}")
    for number, (place, many) in found.elsewhere.items():
        print(f"          {many:,} of ant {number} not read: they are at {place or 'an unknown place'}")
