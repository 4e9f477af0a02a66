"""The command ``scrapy crawl fountain``, which works in any folder: outside a project it uses webfountain's settings.

Scrapy finds the command by the entry point in pyproject.toml. Inside a project it does the same as Scrapy's command.
Outside a project Scrapy has no `crawl`, because there are no spiders. In that case this command knows only the
fountain spider.
"""

from __future__ import annotations

from typing import Any, ClassVar

from scrapy.commands.crawl import Command as ScrapyCommand
from scrapy.settings import BaseSettings
from scrapy.utils.project import inside_project

__all__ = ["Command"]


def _settings() -> dict[str, Any]:
    """Return the settings of `webfountain.settings`. In a project, which has its own settings, return none."""
    if inside_project():
        return {}
    ours = BaseSettings()
    ours.setmodule("webfountain.settings")
    return dict(ours)


class Command(ScrapyCommand):
    """The `crawl` command; see the module."""

    requires_project = False
    default_settings: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.default_settings = _settings()  # type: ignore[misc]
