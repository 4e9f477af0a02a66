"""Builds the package with the policy files of `policies/` inside: an installed wheel has the examples, too.

Everything else stands in pyproject.toml.
"""

from __future__ import annotations

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent


class BuildWithExamples(build_py):
    """Copies `policies/` into the package. An editable install reads them where they are."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib) / "webfountain" / "policies"
        self.mkpath(str(target))
        for file in sorted((ROOT / "policies").iterdir()):
            self.copy_file(str(file), str(target / file.name))


setup(cmdclass={"build_py": BuildWithExamples})
