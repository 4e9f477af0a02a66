"""The command line `webfountain COMMAND`. The exit status is 0 for success, 1 for a failure, and 2 for wrong arguments
or input.

Each command is imported only when it is called, so that `webfountain status` does not import Scrapy. Expected errors
(`WebfountainError`) and errors of the operating system (`OSError`) are shown as one line on standard error. If a
command ends with a traceback, webfountain has a bug.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import keyword
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from webfountain import __version__
from webfountain.commands.file_owners import owner_hint, user_name
from webfountain.errors import WebfountainError
from webfountain.terminal_text import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["COMMANDS", "command_of", "main", "run"]

COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "crawl": ("commands.crawl", "Crawl a collection and keep its copy fresh."),
    "demo": ("lab.commands.demo", "Crawl a generated web on loopback for about a minute."),
    "now": ("commands.notes", "Fetch URLs before all others, also in a running crawl."),
    "pause": ("commands.notes", "Stop all requests of a crawl until it is resumed."),
    "resume": ("commands.notes", "Resume a paused crawl."),
    "block": ("commands.notes", "Block a site or a URL prefix, or list the blocks."),
    "unblock": ("commands.notes", "Remove the block of a site or a URL prefix."),
    "drain": ("commands.notes", "End one crawling process and give its sites to the others."),
    "forget": ("commands.notes", "Remove a page or a site for good."),
    "status": ("commands.status", "Show counts, rate, freshness, what limits the crawl, and the plan in force."),
    "pages": ("commands.pages", "List the known URLs with their records."),
    "sites": ("commands.pages", "List the known sites."),
    "texts": ("commands.texts", "Print new and changed pages as text, for a search or RAG index."),
    "changes": ("commands.changes", "Print the change log: each new, changed or removed page, in order."),
    "cat": ("commands.texts", "Print the newest copy of a page."),
    "serve": ("commands.serve", "Serve collections over HTTP: REST, changes, metrics."),
    "index": ("commands.search", "Build the search index of a collection, and keep it up to date."),
    "search": ("commands.search", "Search the titles and texts of a collection."),
    "mcp": ("commands.serve", "Serve a collection to language models."),
    "explain": ("commands.pages", "Explain the state of a URL, or why it is not known."),
    "export": ("commands.transfer", "Export a whole store to a file."),
    "import": ("commands.transfer", "Make a new store from an exported file."),
    "duplicates": ("commands.duplicates", "Export signatures of texts, to find duplicates across collections."),
    "take-over": ("commands.transfer", "Take over the requests that scrapy-redis left on a server."),
    "check": ("commands.check", "Check a store and its copies, and repair them (--repair)."),
    "policy": ("commands.policy", "Check policy files."),
    "plan": ("lab.commands.plan", "Show the plan of a crawl; solve and draw the model of Edwards 2001."),
    "rank": ("lab.commands.rank", "Rank pages by their links."),
    "simulate": ("lab.commands.simulate", "Simulate revisit policies, orderings and URL caches on recorded webs."),
    "evolution": ("lab.commands.evolution", "Analyse how pages change, as Cho 2000 does."),
}
"""For each command, by name, the module that defines it and a line of help."""


def command_of(name: str) -> click.Command:
    """Import and return a command. If a command has the name of a Python keyword, such as `import`, the name of its
    function ends with an underscore.
    """
    module = importlib.import_module(f"webfountain.{COMMANDS[name][0]}")
    command: click.Command = getattr(module, f"{name}_" if keyword.iskeyword(name) else name.replace("-", "_"))
    return command


@contextlib.contextmanager
def _cut_short() -> Iterator[None]:
    """If a reader such as `head` closes the output pipe early, end with status 0."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())  # Python may still write at the end of the process
        raise click.exceptions.Exit(0) from None


class _CommandGroup(click.Group):
    """The group of all commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return command_of(cmd_name) if cmd_name in COMMANDS else None

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        with _cut_short():
            return super().make_context(*arguments, **more)

    def invoke(self, ctx: click.Context) -> object:
        gc.freeze()
        gc.enable()
        with _cut_short():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(cls=_CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__)
def _doors() -> None:
    """An incremental web crawler: it keeps a fresh copy of chosen parts of the web on a bounded budget.

    Start with `webfountain demo`. A collection of your own is a policy file: `webfountain crawl mine.toml`.
    """


def run() -> int:
    """Run this process's command line, return its exit status, and make the process end soon, even if threads are still
    waiting.
    """
    from webfountain.commands.time_limit import limit_exit  # noqa: PLC0415  costs nothing once a command was imported

    _mend_streams()
    status = main()
    limit_exit(status)
    return status


def _mend_streams() -> None:
    """Make output possible if a stream is closed, or if its encoding lacks characters that pages have."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # a file that is opened later must not take its number
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  until the process ends
        getattr(sys, name).reconfigure(errors="backslashreplace")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit status."""
    gc.disable()  # imports leave no cycles behind, and collections would take a tenth of their time
    try:
        status = _doors.main(args=arguments, prog_name="webfountain", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)
        return 2
    except click.ClickException as error:
        return _say(_complaint(error), 2)
    except click.Abort:
        return _say("stopped", 1)
    except WebfountainError as error:
        return _say(str(error), error.exit_status)
    except OSError as error:
        return _say(_refusal(error), 1)
    return status if isinstance(status, int) else 0


def _complaint(error: click.ClickException) -> str:
    """Return the one-line message for a wrong command line."""
    message = error.format_message()
    if isinstance(error, click.MissingParameter) and error.ctx is not None:
        return f"{message} (`{error.ctx.command_path} --help` has an example)"
    return message


def _refusal(error: OSError) -> str:
    """Return the one-line message for an error of the operating system. If a file belongs to another user, the message
    names the owner.
    """
    place = str(error.filename or "the system")
    if not isinstance(error, PermissionError):
        return f"{place}: {error.strerror or error}"
    return f"{place}: permission denied for user {user_name(os.geteuid())}{owner_hint(Path(place))}"


def _say(message: str, status: int) -> int:
    line = shown(" ".join(message.split()))
    print(f"webfountain: {line}", file=sys.stderr)
    return status
