"""Run the jobs of a scrapyd that several projects share.

deploy/scrapyd.conf names it as `runner`. scrapyd starts it to list a project's spiders, and for each job. A project
named in the section [settings] gets the settings module given there. Any other project gets the module in its egg,
whatever SCRAPY_SETTINGS_MODULE is in scrapyd's own environment. Without this runner, scrapyd would list the spiders of
SCRAPY_SETTINGS_MODULE for every project, or require an egg from a project that needs none.
"""

from __future__ import annotations

import os

from scrapyd import Config
from scrapyd.runner import main

__all__ = ["choose_settings"]

_VARIABLE = "SCRAPY_SETTINGS_MODULE"


def choose_settings(project: str) -> None:
    """Set the settings module of a project for this process, or leave it to the project's egg."""
    os.environ.pop(_VARIABLE, None)
    named = dict(Config().items("settings", default=[]))
    if project in named:
        os.environ[_VARIABLE] = named[project]


if __name__ == "__main__":
    choose_settings(os.environ["SCRAPY_PROJECT"])
    main()
