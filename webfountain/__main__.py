"""`python -m webfountain`: the command line of `cli`."""

from __future__ import annotations

import sys

from webfountain.cli import run

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(run())
