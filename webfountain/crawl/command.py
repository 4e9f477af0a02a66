"""The command ``scrapy crawl``, inside and outside of Scrapy projects.

Scrapy finds the command by the entry point in pyproject.toml. In the folder of a Scrapy project, the command does the
same as Scrapy's. Outside of Scrapy projects, the command uses webfountain's settings and knows only the fountain
spider.
"""

from __future__ import annotations

from typing import Any, ClassVar

from scrapy.commands.crawl import Command as ScrapyCommand
from scrapy.settings import BaseSettings
from scrapy.utils.project import inside_project

__all__ = ["Command"]


def _settings() -> dict[str, Any]:
    """Return webfountain's settings, or an empty dict in the folder of a Scrapy project."""
    if inside_project():
        return {}
    ours = BaseSettings()
    ours.setmodule("webfountain.settings")
    return dict(ours)


class Command(ScrapyCommand):
    """The `crawl` command."""

    requires_project = False
    default_settings: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.default_settings = _settings()  # type: ignore[misc]
