"""Count lines of code, statements and modules of a git revision, for product and laboratory.

``python -m tests.benchmarks.house_counts aa57f92 HEAD`` prints one row a revision and room, and the share of the first
revision's product that the last one has. Without arguments: HEAD. A line of code is a line with at least one token that
is neither a comment nor a docstring; blank lines do not count. Statements are those of `ast`, docstrings apart. They
stand beside the lines because nobody can lower them by longer lines. Frame lines are the part of the code lines that
imports and `__all__` take: each module that is split off needs its own. The Lua of the shared store is counted by lines
that are neither blank nor a comment.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tokenize
from collections import defaultdict
from typing import Final, NamedTuple, TypeGuard

_SILENT: Final = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


class Size(NamedTuple):
    """The size of some files."""

    modules: int = 0
    lines: int = 0
    code: int = 0
    frame: int = 0
    statements: int = 0

    def plus(self, other: Size) -> Size:
        """Return the sum of both."""
        return Size(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


def docstrings(tree: ast.AST) -> list[ast.Expr]:
    """Return all strings that stand alone as a statement: docstrings, those of constants and fields too."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]


def python_size(text: str) -> Size:
    tree = ast.parse(text)
    strings = docstrings(tree)
    code = set[int]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _SILENT:
            code.update(range(token.start[0], token.end[0] + 1))
    for node in strings:
        code.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    frame = set[int]()
    for each in ast.walk(tree):
        if isinstance(each, ast.Import | ast.ImportFrom) or _is_all(each):
            frame.update(range(each.lineno, (each.end_lineno or each.lineno) + 1))
    statements = sum(isinstance(node, ast.stmt) for node in ast.walk(tree)) - len(strings)
    return Size(1, text.count("\n"), len(code), len(frame & code), statements)


def _is_all(node: ast.AST) -> TypeGuard[ast.Assign]:
    return isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id == "__all__" for to in node.targets)


def lua_lines(text: str) -> int:
    return sum(bool(line.strip()) and not line.strip().startswith("--") for line in text.splitlines())


def room_of(path: str) -> str:
    parts = path.split("/")
    return parts[1] if len(parts) > 2 else "top"


def sizes_of(revision: str) -> tuple[dict[str, Size], int]:
    """Return the size of each room of a revision, and its lines of Lua."""
    rooms: dict[str, Size] = defaultdict(Size)
    lua = 0
    for path in git("ls-tree", "-r", "--name-only", revision, "webfountain").splitlines():
        if path.endswith(".py"):
            rooms[room_of(path)] = rooms[room_of(path)].plus(python_size(git("show", f"{revision}:{path}")))
        elif path.endswith(".lua"):
            lua += lua_lines(git("show", f"{revision}:{path}"))
    return dict(rooms), lua


def product_of(rooms: dict[str, Size]) -> Size:
    total = Size()
    for room, size in rooms.items():
        if room != "lab":
            total = total.plus(size)
    return total


def main(revisions: list[str]) -> None:
    """Print the sizes of all revisions."""
    products = []
    for revision in revisions:
        rooms, lua = sizes_of(revision)
        product = product_of(rooms)
        products.append(product)
        print(f"{git('log', '-1', '--format=%h %s', revision).strip()}\n")
        print("| room | modules | lines | code lines | frame lines | statements |\n|---|---|---|---|---|---|")
        for room, size in [*sorted(rooms.items(), key=lambda entry: -entry[1].code), ("**product**", product)]:
            print(f"| {room} | {' | '.join(f'{count:,}' for count in size)} |")
        print(f"\nLua: {lua:,} lines\n")
    if len(products) > 1:
        first, last = products[0], products[-1]
        print(f"product, last of first: code lines {last.code / first.code:.1%}, ", end="")
        print(f"without frame {(last.code - last.frame) / (first.code - first.frame):.1%}, ", end="")
        print(f"statements {last.statements / first.statements:.1%}")


if __name__ == "__main__":
    main(sys.argv[1:] or ["HEAD"])
