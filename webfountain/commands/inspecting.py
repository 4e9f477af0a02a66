"""What is known, and why: status, pages, sites, texts, changes, cat, explain, policy check, check, export, import.

All but `check --repair` and `import` change nothing and work beside a crawl, also one in another process. `policy
check` says what a policy file means, or the one line that is wrong with it, `explain` what becomes of one URL;
`export` and `import` carry a whole frontier to a file and back, between folder and server, or into a new format.
"""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from webfountain import commands
from webfountain.clock import SystemClock
from webfountain.errors import InputError, PolicyError, StoreError, shown, shown_lines
from webfountain.frontier.colony import ants_of
from webfountain.frontier.inbox import seed_links
from webfountain.policy.files import describe, read_collection
from webfountain.policy.judge import Judge, newly_followed, policy_effect
from webfountain.records import STATES
from webfountain.report import state as collected
from webfountain.report.state import examine_store, mend_copies
from webfountain.store import (
    folder_of,
    is_held,
    is_shared,
    load_store,
    open_store,
    read_every_entry,
    recount,
    without_password,
)
from webfountain.store.contract import PLAN
from webfountain.store.transfer import Tally, read_rows, write_rows
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webfountain.errors import RepositoryError
    from webfountain.policy.files import Collection
    from webfountain.policy.judge import Reason
    from webfountain.records import PageRecord
    from webfountain.report.state import Wholeness
    from webfountain.repository.warc import Stored
    from webfountain.store.contract import FrontierStore
    from webfountain.store.transfer import End

__all__ = ["cat", "changes", "check", "explain", "export", "import_", "pages", "policy", "sites", "status", "texts"]

SHORTEST_WAIT_S: Final = 0.2
LONGEST_WAIT_S: Final = 2.0
"""Between two looks of `changes --follow`: the quieter the log, the longer."""
_SAMPLE: Final = 10
"""URLs shown of those that an edited policy file would take in."""
_FEW_ANTS: Final = 16
"""The sites of so many ants are told one by one."""


@click.command(epilog="Example: webfountain status --store rocksdb://news")
@commands.store
@commands.as_json
def status(store: str, as_json: bool) -> None:
    """Counts by state, rate, freshness estimate, plan in force."""
    with commands.reading(store) as opened:
        found = collected.status(opened, at=SystemClock().now(), period_s=opened.period_s, fastest_s=opened.fastest_s)
        plan = _plan(opened)
        ants = None if opened.claims is None else ants_of(opened.claims, SystemClock().now())
    is_crawled = is_held(commands.existing_folder(store)) if ants is None else bool(ants)
    found = {"store": without_password(store), **found, "plan": plan, "crawling": is_crawled}
    if ants is not None:
        found["ants"] = [
            {"name": name, "sites": ant.sites, "in_flight": ant.in_flight, "idle_since": ant.idle_since}
            for name, ant in sorted(ants.items())
        ]
    commands.print_json(found) if as_json else _print_status(found)


@click.command(epilog="Example: webfountain pages --site https://example.org --state failed")
@commands.store
@click.option("--site", metavar="S", help="Only this site, as https://example.org.")
@click.option("--state", type=click.Choice(STATES), help="Only URLs in this state.")
@click.option("--jsonl", "--json", "as_lines", is_flag=True, help="Print one JSON document a line.")
def pages(store: str, site: str | None, state: Any, as_lines: bool) -> None:
    """One record per known URL."""
    with commands.reading(store) as opened:
        rows = collected.pages(opened, site=site, state=state)
        commands.print_json_lines(rows) if as_lines else _print_pages(rows)


@click.command(epilog="Example: webfountain sites --store redis://localhost:6379/0")
@commands.store
@commands.as_json
def sites(store: str, as_json: bool) -> None:
    """One line per known site: its pages, when it is due, its robots.txt, its failures."""
    with commands.reading(store) as opened:
        rows = collected.sites(opened)
        commands.print_json(list(rows)) if as_json else _print_sites(rows)


@click.command(epilog="Example: webfountain texts --jsonl --since 2026-01-31T12:00")
@commands.store
@commands.repository
@click.option(
    "--since",
    metavar="TIME|CURSOR",
    help="Only what came, changed or went since: a cursor of the change log, UTC seconds, or 2026-01-31T12:00.",
)
@click.option("--jsonl", "--json", "as_lines", is_flag=True, help="Print one JSON document a line.")
def texts(store: str, repository: str | None, since: str | None, as_lines: bool) -> None:
    """What changed, as text: url, verdict, fetched, title, text, cursor. A page no longer to be held has text null."""
    asked = commands.since_of(since)
    lost: list[RepositoryError] = []
    with (
        commands.reading(store) as opened,
        commands.copies(store, repository, places=commands.places_of(opened)) as kept,
    ):
        cursor = commands.cursor_of(opened, asked)
        if cursor is None:
            rows = collected.texts(opened, kept, unreadable=lost.append)
        else:
            rows = collected.texts_since(opened, kept, cursor, unreadable=lost.append)
        commands.print_json_lines(rows) if as_lines else _print_texts(rows)
    if lost:
        print(
            f"webfountain: warning: {len(lost):,} pages left out, whose copy cannot be read "
            f"(the first: {lost[0]}); `webfountain check --repair` has them fetched again",
            file=sys.stderr,
        )


@click.command(epilog="Example: webfountain changes --follow --jsonl")
@commands.store
@click.option("--since", metavar="CURSOR|TIME", help="Only what came after; all that the log keeps without it.")
@click.option("--follow", is_flag=True, help="Wait for more, until interrupted.")
@click.option("--site", metavar="S", help="Only this site, as https://example.org.")
@click.option("--jsonl", "--json", "as_lines", is_flag=True, help="Print one JSON document a line.")
def changes(store: str, since: str | None, follow: bool, site: str | None, as_lines: bool) -> None:
    """The change log: what became of each page, in order, and the cursor to go on with.

    A page whose verdict is new, changed, minor or returned is to be held; after any other it is not.
    """
    asked = commands.since_of(since)
    with commands.reading(store) as opened, contextlib.suppress(KeyboardInterrupt):
        cursor = commands.cursor_of(opened, asked)
        wait_s = SHORTEST_WAIT_S
        while True:
            before, rows = cursor, list(collected.changes(opened, cursor, site=site))
            cursor = rows[-1]["cursor"]
            if not follow or cursor != before:
                commands.print_json_lines(rows) if as_lines else _print_changes(rows)
            if not follow:
                return
            wait_s = min(LONGEST_WAIT_S, 1.5 * wait_s) if cursor == before else SHORTEST_WAIT_S
            time.sleep(wait_s)


@click.command(epilog="Example: webfountain cat https://example.org/news --text")
@click.argument("url")
@commands.store
@commands.repository
@click.option("--text", "part", flag_value="text", help="The visible text instead of the bytes.")
@click.option("--headers", "part", flag_value="headers", help="Status and headers of the answer instead.")
@commands.as_json
def cat(url: str, store: str, repository: str | None, part: str | None, as_json: bool) -> None:
    """Print the newest copy of URL after content decoding."""
    with (
        commands.reading(store) as opened,
        commands.copies(store, repository, places=commands.places_of(opened)) as kept,
    ):
        copy = collected.cat(opened, kept, url)
    if as_json:
        commands.print_json(_copy_document(copy))
    elif part == "text":
        print(shown_lines(collected.text_of_copy(copy).text))
    elif part == "headers":
        print("\n".join([str(copy.status), *(shown(f"{name}: {value}") for name, value in copy.headers)]))
    else:
        sys.stdout.buffer.write(copy.body)
        sys.stdout.buffer.flush()


def _plan(store: FrontierStore) -> dict[str, Any] | None:
    """The plan in force; what reads it is imported only where there is one."""
    if store.value(PLAN) is None:
        return None
    from webfountain.report.state import plan_in_force  # noqa: PLC0415  numpy, 0.1 s

    return plan_in_force(store, at=SystemClock().now())


def _copy_document(copy: Stored) -> dict[str, Any]:
    found = collected.text_of_copy(copy)
    headers = [list(header) for header in copy.headers]
    answer = {"url": copy.url, "fetched": copy.at, "status": copy.status, "headers": headers}
    return {**answer, "title": found.title, "text": found.text}


def _print_changes(rows: Sequence[Mapping[str, Any]]) -> None:
    columns = {
        "verdict": lambda row: row["verdict"],
        "time (UTC)": lambda row: commands.spell_time(row["time"]),
        ">resemblance": lambda row: "-" if row["resemblance"] is None else f"{row['resemblance']:.3f}",
        "url": lambda row: row["url"] + (f" -> {row['target']}" if row["target"] else ""),
        "title": lambda row: row["title"] or "-",
    }
    commands.print_table((row for row in rows if "url" in row), columns)
    print(f"go on with --since {rows[-1]['cursor']}")


def _print_status(found: Mapping[str, Any]) -> None:
    counts = ", ".join(f"{count:,} {state}" for state, count in found["pages"].items() if count)
    fresh = (
        "unknown yet"
        if found["freshness"] is None
        else f"{found['freshness']:.1%} of the known pages ({_basis(found)})"
    )
    rate = f"{found['pages_per_second']:.2f} pages/s since {commands.spell_time(found['since'])} UTC"
    lines = {
        "store": found["store"],
        "known": f"{found['known']:,} URLs" + (f": {counts}" if counts else ""),
        "sites": f"{found['sites']:,}, {found['active_sites']:,} active now",
        "leased": f"{found['in_flight']:,} URLs; {found['immediate']:,} on the immediate queue",
        "rate": f"{rate}: {found['fetches']:,} fetches, {found['changes']:,} found a change",
        "fresh": fresh,
        "plan": "none: the buckets alone decide" if found["plan"] is None else found["plan"]["words"],
    }
    if (ants := found.get("ants")) is not None:
        lines["ants"] = _ants(ants)
    if (domains := found["domains"]) is not None:
        text = f"{domains['busy']:,} busy, {domains['blocked']:,} blocked; each may have {domains['share']:.0%}"
        lines["domains"] = f"{text} of the period's fetches ({commands.spell_time(domains['time'])} UTC)"
    for name, text in lines.items():
        print(f"{name:<8}{text}")


def _ants(ants: Sequence[Mapping[str, Any]]) -> str:
    """How many are alive, and how the sites are shared out."""
    if not ants:
        return "none is alive"
    sites = sorted((ant["sites"] for ant in ants), reverse=True)
    each = ", ".join(map(str, sites)) if len(sites) <= _FEW_ANTS else f"{sites[0]} to {sites[-1]}"
    idle = sum(ant["idle_since"] is not None for ant in ants)
    flying = sum(ant["in_flight"] for ant in ants)
    return f"{len(ants)} alive with {each} sites; {flying} requests in flight" + (f"; {idle} idle" if idle else "")


def _basis(found: Mapping[str, Any]) -> str:
    """How much the fresh share is to be trusted, and whether it is old."""
    parts = ["estimate"]
    if found["freshness_at"] is not None:
        cycles = f"from {found['freshness_cycles']} cycles" if found["freshness_cycles"] else "from no whole cycle yet"
        parts.append(f"{found['freshness_low']:.1%} to {found['freshness_high']:.1%} in 4 of 5 cases, {cycles}")
    if not found["crawling"]:
        at = found["freshness_at"]
        parts.append("for now" if at is None else f"of {commands.spell_time(at)} UTC, and older each day")
        parts.append("no crawl is running to keep it so")
    return "; ".join(parts)


def _print_pages(rows: Any) -> None:
    columns = {
        "state": lambda row: row["state"],
        ">checks": lambda row: str(row["checks"]),
        ">changes": lambda row: str(row["changes"]),
        ">bucket": lambda row: str(row["bucket"]),
        "last crawled (UTC)": lambda row: commands.spell_time(row["last_crawled"]),
        "answer": lambda row: str(row["error"] or row["status"] or "-"),
        "url": lambda row: row["url"] + (f" = {row['duplicate_of']}" if row["duplicate_of"] else ""),
    }
    commands.print_table(rows, columns)


def _print_sites(rows: Any) -> None:
    columns = {
        "site": lambda row: row["site"],
        ">known": lambda row: str(sum(row["pages"].values())),
        ">crawled": lambda row: str(row["pages"]["crawled"]),
        ">new": lambda row: str(row["pages"]["never-crawled"]),
        ">gone": lambda row: str(row["pages"]["gone"]),
        ">failed": lambda row: str(row["pages"]["failed"]),
        ">refused": lambda row: str(row["pages"]["refused"]),
        "robots.txt": lambda row: row["robots"],
        "due (UTC)": lambda row: commands.spell_time(row["due"]),
    }
    commands.print_table(rows, columns)


def _print_texts(rows: Any) -> None:
    columns = {
        "verdict": lambda row: row["verdict"],
        "fetched (UTC)": lambda row: commands.spell_time(row["fetched"]),
        ">characters": lambda row: "-" if row["text"] is None else f"{len(row['text']):,}",
        "url": lambda row: row["url"],
        "title": lambda row: row["title"] or "-",
    }
    commands.print_table(rows, columns)


_SHOWN = 10


@click.command(epilog="Example: webfountain check --repair")
@commands.store
@commands.repository
@click.option("--repair", is_flag=True, help="Count anew, and have pages fetched again whose copy is gone.")
@commands.as_json
def check(store: str, repository: str | None, repair: bool, as_json: bool) -> int:
    """Tell whether a store and its copies are whole: status 0 when they are, or were made so, else 1.

    Every entry of the store and every copy is read. A crawl may be running, but not with --repair.
    """
    folder = None if is_shared(store) else commands.existing_folder(store)
    if repair and _is_crawled(store, folder):
        raise InputError(f"--store {without_password(store)!r}: a crawl has it open; stop that first, then repair")
    document: dict[str, Any] = {"store": without_password(store), "damage": None, "entries": None}
    try:
        if folder is not None:
            document["entries"] = read_every_entry(folder)
        found = _examine(store, repository)
    except StoreError as error:
        document["damage"] = str(error)
        commands.print_json({**document, "whole": False}) if as_json else _print_damage(error)
        return 1
    mended = repair and not found.is_whole
    if mended:
        _mend(store, folder, found)
    if as_json:
        commands.print_json({**document, "whole": found.is_whole, "mended": mended, **msgspec.to_builtins(found)})
    else:
        _print(found, entries=document["entries"], mended=mended)
    return 0 if found.is_whole or mended else 1


def _examine(store: str, repository: str | None) -> Wholeness:
    """Both opened for reading; a store without a repository has no copies to look at."""
    has_copies = (repository is not None or not is_shared(store)) and commands.repository_folder(
        store, repository
    ).is_dir()
    with commands.reading(store) as opened, contextlib.ExitStack() as stack:
        kept = stack.enter_context(commands.copies(store, repository)) if has_copies else None
        return examine_store(opened, kept, progress=_progress)


def _is_crawled(store: str, folder: Path | None) -> bool:
    """Whether a crawl has a store open; of a server's nobody has a lock, but somebody has its sites."""
    if folder is not None:
        return is_held(folder)
    with commands.reading(store) as opened:
        return opened.statistics().active_sites > 0


def _mend(store: str, folder: Path | None, found: Wholeness) -> None:
    if found.counts and folder is None:
        raise InputError(
            f"--store {without_password(store)!r}: its counts are made anew by `webfountain export` and `import` into "
            "another prefix"
        )
    if found.counts and folder is not None:
        recount(folder)
    if found.lost:
        with contextlib.closing(open_store(store, collection=None, period_s=None)) as opened:
            mend_copies(opened, found.lost, at=SystemClock().now())


def _progress(pages: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{pages:,} pages", end="\r", file=sys.stderr, flush=True)


def _print_damage(error: StoreError) -> None:
    print(f"webfountain: {error}", file=sys.stderr)
    print("store   damaged: what lies in that block is lost; put a backup of its folder back, or begin a new store")


def _print(found: Wholeness, *, entries: int | None, mended: bool) -> None:
    read = "" if entries is None else f"{entries:,} entries read, "
    print(f"store   whole: {read}{found.pages:,} URLs on {found.sites:,} sites")
    if not found.counts:
        print("counts  whole")
    else:
        print(f"counts  {'made anew' if mended else 'wrong'}: {len(found.counts):,} differ")
        for what, counted, there in found.counts[:_SHOWN]:
            print(f"          {what}: counted {counted:,}, there are {there:,}")
    if not found.lost:
        print(f"copies  whole: {found.copies:,} read")
    else:
        then = "their pages are due now, to be fetched again" if mended else "`--repair` has their pages fetched again"
        print(f"copies  {len(found.lost):,} of {found.copies:,} gone or damaged; {then}")
        for each in found.lost[:_SHOWN]:
            print(f"          {each.url}: {each.why}")


@click.group()
def policy() -> None:
    """Check policy files."""


@policy.command("check", epilog="Example: webfountain policy check mine.toml --against rocksdb://.webfountain")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--against", metavar="STORE", help="Tell which known URLs of this store the file would drop or take.")
@commands.as_json
def check_files(files: tuple[str, ...], against: str | None, as_json: bool) -> int:
    """Check policy FILEs: each is fine, or one line names file, key and value and the exit status is 2.

    With --against, before an edited file is used: what it would drop or take in.
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
        commands.print_json(found)
    else:
        _print_policy(found)
    return 2 if wrong else 0


@click.command(epilog="Example: webfountain explain https://example.org/news")
@click.argument("url")
@commands.store
@click.option("--collection", metavar="FILE", help="Explain under this policy file.  [default: the one in force]")
@click.option("--from", "linked_by", metavar="PAGE", help="Of an unknown URL: as this known page links it.")
@commands.as_json
def explain(url: str, store: str, collection: str | None, linked_by: str | None, as_json: bool) -> None:
    """Why URL has its policy, trust, importance and next visit, or why it was never taken in."""
    from webfountain.report import explain as explaining  # noqa: PLC0415  numpy, 0.1 s

    with commands.reading(store) as opened:
        rules = explaining.collection_of(opened, collection)
        home = folder_of(store)
        scores = None if home is None else home / "scores"
        links, at = _link_log(rules, store), SystemClock().now()
        found = explaining.explain(opened, rules, url, at=at, linked_by=linked_by, scores=scores, links=links)
    commands.print_json(found) if as_json else print("\n".join(map(shown, (found.url or found.given, *found.why))))


def _refused_seeds(collection: Collection) -> int:
    """How many of its own seeds the file refuses; a crawl of none but those ends at once."""
    refused: dict[Reason, tuple[int, str]] = {}
    for _ in seed_links(collection, Judge(collection, year=time.gmtime().tm_year), refused):
        pass
    return sum(many for many, _ in refused.values())


def _effect(collection: Collection, store_url: str) -> dict[str, Any]:
    """What the file would do to a store that exists."""
    judge = Judge(collection, year=time.gmtime().tm_year)
    with commands.reading(store_url) as store:
        effect: dict[str, Any] = msgspec.to_builtins(policy_effect(judge, (record for _, record in store.pages())))
        links = _link_log(collection, store_url)
        found = [] if links is None else sorted(_newly_followed(judge, store, links))
    return effect | {"followed": len(found), "sample_followed": found[:_SAMPLE]}


def _link_log(collection: Collection, store_url: str) -> str | None:
    """Where the links lie that a crawl has logged, if it has."""
    home = folder_of(store_url)
    return collection.ranking.links or (str(home / "links") if home is not None and (home / "links").is_dir() else None)


def _newly_followed(judge: Judge, store: FrontierStore, links: str) -> Iterator[str]:
    """Links that the crawl refused, and would not under this judge."""
    from webfountain.ranking.link_log import LinkLogReader  # noqa: PLC0415  (pyarrow, 0.3 s)

    def known(url: str) -> PageRecord | None:
        return store.page(site_of(url), fingerprint(url))

    refused = ((known(url), found) for url, found in LinkLogReader(links).unfollowed().items())
    pages = ((page, found) for page, found in refused if page is not None and page.duplicate_of is None)
    yield from (url for url in newly_followed(judge, pages) if known(url) is None)


def _print_policy(found: list[dict[str, Any]]) -> None:
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
    if effect["followed"]:
        print(f"  of links that were refused {effect['followed']:,} would be taken in when their pages change")
    for url in effect["sample_followed"]:
        print(f"    + {url}")


@click.command(epilog="Example: webfountain export frontier.parquet --store rocksdb://news")
@click.argument("file", metavar="FILE")
@commands.store
@commands.as_json
def export(file: str, store: str, as_json: bool) -> None:
    """Write all that a store holds to FILE: Parquet where it ends in .parquet, else JSON lines.

    URLs with their histories, importances and turns, sites, census, plan, change log, what was forgotten; not the
    copies, which lie in the repository. A crawl may be running: the file is of one moment.
    """
    with commands.reading(store) as opened:
        end = write_rows(Path(file), opened.rows())
    _print_moved(file, end, as_json, f"{without_password(store)} is in {file}")


@click.command(name="import", epilog="Example: webfountain import frontier.parquet --store redis://localhost:6379/0")
@click.argument("file", metavar="FILE")
@commands.store
@commands.as_json
def import_(file: str, store: str, as_json: bool) -> None:
    """Make a new store of what `export` wrote, of any kind. A store that is there is left alone."""
    tally = Tally()
    load_store(store, tally.over(read_rows(Path(file))))
    _print_moved(file, tally.end(), as_json, f"{file} is in {without_password(store)}")


def _print_moved(file: str, end: End, as_json: bool, sentence: str) -> None:
    if as_json:
        commands.print_json({"file": file, "sites": end.sites, "pages": end.pages, "changes": end.changes})
    else:
        print(f"{sentence}: {end.pages:,} URLs on {end.sites:,} sites, {end.changes:,} entries of the change log")
