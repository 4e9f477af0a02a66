"""Benchmarks. The processes that they start use compiled bytecode, like a user's processes."""

import os

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
