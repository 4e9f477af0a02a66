"""datasketch without scipy.integrate: a sketch does not import it, and what needs it still works."""

from __future__ import annotations

import subprocess
import sys

ALONE = """
import sys
from webfountain.core.sketch import sketch
assert sketch(" ".join(f"word{number}" for number in range(100)))
assert "datasketch" in sys.modules and "scipy.integrate" not in sys.modules
from datasketch import MinHashLSH
index = MinHashLSH(threshold=0.7, num_perm=64)
assert (index.b, index.r) == (8, 8)
assert sys.modules["scipy.integrate"].__file__
"""


def test_a_sketch_does_not_import_scipy_integrate_and_datasketch_still_chooses_its_bands() -> None:
    subprocess.run([sys.executable, "-c", ALONE], check=True)
