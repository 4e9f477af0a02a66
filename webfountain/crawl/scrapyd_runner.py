"""Run the jobs of a scrapyd that several projects share.

deploy/scrapyd.conf names this module as `runner`. Scrapyd starts the runner to list a project's spiders, and for each
job. A project in the section [settings] gets the settings module that the section names. Any other project gets the
module in its egg, whatever SCRAPY_SETTINGS_MODULE is in scrapyd's own environment.
"""

from __future__ import annotations

import os

from scrapyd import Config
from scrapyd.runner import main

__all__ = ["choose_settings"]

_VARIABLE = "SCRAPY_SETTINGS_MODULE"


def choose_settings(project: str) -> None:
    """Set the settings module of a project for this process, unless the project's egg defines it."""
    os.environ.pop(_VARIABLE, None)
    named = dict(Config().items("settings", default=[]))
    if project in named:
        os.environ[_VARIABLE] = named[project]


if __name__ == "__main__":
    choose_settings(os.environ["SCRAPY_PROJECT"])
    main()
