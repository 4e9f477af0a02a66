"""The command line: `webfountain COMMAND`, exit status 0 done, 1 failed, 2 wrong arguments or input.

The top floor. A command is imported when it is called, so that `status` does not pay for Scrapy. What goes wrong on
purpose (`WebfountainError`) and what the system refuses (`OSError`) becomes one line on standard error; a traceback
is a bug. The commands themselves are in `commands`, what they call in the rooms below.
"""

from __future__ import annotations

import importlib
import keyword
import sys
from typing import TYPE_CHECKING, Final

import click

from webfountain.errors import WebfountainError, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["COMMANDS", "command_of", "main"]

COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "crawl": ("crawling", "Crawl a collection and keep its copy fresh."),
    "demo": ("crawling", "Crawl a generated web on loopback for about a minute."),
    "now": ("crawling", "Put URLs on the immediate queue, also of a running crawl."),
    "forget": ("crawling", "Remove a page or a site for good."),
    "status": ("inspecting", "Counts by state, rate, freshness estimate, plan in force."),
    "pages": ("inspecting", "One record per known URL."),
    "sites": ("inspecting", "One line per known site."),
    "texts": ("inspecting", "What changed, as text for a search or RAG index."),
    "changes": ("inspecting", "The change log: what became of each page, in order."),
    "cat": ("inspecting", "Print the newest copy of a page."),
    "explain": ("inspecting", "Why a URL is as it is, or was never taken in."),
    "export": ("inspecting", "Write a whole store to a file, to be moved or kept."),
    "import": ("inspecting", "Make a new store of an exported file, of any kind."),
    "check": ("inspecting", "Whether a store and its copies are whole; --repair mends what can be."),
    "policy": ("inspecting", "Check policy files."),
    "plan": ("analysing", "Solve and draw the optimisation model of Edwards 2001."),
    "rank": ("analysing", "Rank pages by their links."),
    "simulate": ("analysing", "Revisit policies, orderings and URL caches on recorded webs."),
    "evolution": ("analysing", "How pages change: the analysis of Cho 2000."),
}
"""Name -> module in `webfountain.commands` that defines a click command of that name, and its line of help."""


def command_of(name: str) -> click.Command:
    """A command, imported now; one whose name is a word of Python's has an underscore after it there."""
    module = importlib.import_module(f"webfountain.commands.{COMMANDS[name][0]}")
    command: click.Command = getattr(module, f"{name}_" if keyword.iskeyword(name) else name)
    return command


class _Doors(click.Group):
    """The commands, each imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return command_of(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(cls=_Doors, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="webfountain")
def _doors() -> None:
    """An incremental web crawler: keeps a fresh copy of chosen parts of the web on a bounded budget.

    Start with `webfountain demo`, then `webfountain crawl policies/docs-site.toml`.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; the exit status."""
    try:
        status = _doors.main(args=arguments, prog_name="webfountain", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)
        return 2
    except click.ClickException as error:
        return _say(error.format_message(), 2)
    except click.Abort:
        return _say("stopped", 1)
    except WebfountainError as error:
        return _say(str(error), error.exit_status)
    except OSError as error:
        return _say(f"{error.filename or 'the system'}: {error.strerror or error}", 1)
    return status if isinstance(status, int) else 0


def _say(message: str, status: int) -> int:
    line = shown(" ".join(message.split()))
    print(f"webfountain: {line}", file=sys.stderr)
    return status
