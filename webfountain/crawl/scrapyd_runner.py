"""Run the jobs of a scrapyd that several projects share.

deploy/scrapyd.conf names this module as `runner`. Scrapyd starts the runner to list a project's spiders, and for each
job. A project's settings module is named by the section [settings] of scrapyd.conf, or else by the project's egg.
SCRAPY_SETTINGS_MODULE in scrapyd's own environment has no effect.
"""

from __future__ import annotations

import os

from scrapyd import Config
from scrapyd.runner import main

__all__ = ["choose_settings"]

_VARIABLE = "SCRAPY_SETTINGS_MODULE"


def choose_settings(project: str) -> None:
    """Set SCRAPY_SETTINGS_MODULE for the project that this process runs, from the section [settings] of
    scrapyd.conf.
    """
    os.environ.pop(_VARIABLE, None)
    named = dict(Config().items("settings", default=[]))
    if project in named:
        os.environ[_VARIABLE] = named[project]


if __name__ == "__main__":
    choose_settings(os.environ["SCRAPY_PROJECT"])
    main()
