"""The figures. Like a user's, the processes that they start keep what they compiled: it is no part of any figure."""

import os

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
