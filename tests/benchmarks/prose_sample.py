"""Draw sentences of docstrings for readers who have not seen the code.

``python -m tests.benchmarks.prose_sample [COUNT]``
The seed is the hash of the commit that is checked out, so nobody chooses the sample. A reader marks each sentence that
must be read twice. The goal is at most 5 of 150.
"""

from __future__ import annotations

import ast
import random
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_SECTION = re.compile(r"\n\s*(?:Parameters|Returns|Raises|Source|Notes)\s*\n\s*-+\n.*?(?=\n\s*\n|\Z)", re.DOTALL)
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")


def docstrings(tree: ast.Module) -> list[str]:
    """Return every docstring of a module, those of constants too."""
    return [
        node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]


def sentences(text: str) -> list[str]:
    """Return the sentences of a docstring without its tables, lists and sections."""
    paragraphs = [part for part in re.split(r"\n\s*\n", _SECTION.sub("", "\n" + text)) if "---" not in part]
    plain = [" ".join(part.split()) for part in paragraphs if not part.lstrip().startswith(("- ", "|", "::", "1. "))]
    return [sentence for part in plain for sentence in _END.split(part) if len(sentence.split()) > 2]


def main(count: int = 150) -> None:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = sorted((ROOT / "webfountain").rglob("*.py"))
    found = [
        f"[{path.relative_to(ROOT / 'webfountain')}] {sentence}"
        for path in files
        for text in docstrings(ast.parse(path.read_text(encoding="utf-8")))
        for sentence in sentences(text)
    ]
    print(f"{count} of {len(found)} sentences, seed {commit.strip()}")
    for number, sentence in enumerate(random.Random(commit.strip()).sample(found, count), 1):
        print(f"{number}. {sentence}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
