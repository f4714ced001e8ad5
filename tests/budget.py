"""Lines of code per folder of the package, and the budget that they keep.

    uv run python tests/budget.py

A line counts if it holds code: comments, docstrings and blank lines are free, so nobody saves words.  Tokens per line
are counted, too: a budget that is met by denser lines is not met.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "minigrad"
LINES, TOKENS_PER_LINE, FILES = 23_000, 10.5, 161
FREE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENCODING, tokenize.ENDMARKER,
}  # fmt: skip


def measure(source: str) -> tuple[int, int]:
    """(lines, tokens) of code."""
    docstrings = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and ast.get_docstring(node, clean=False) is not None
        for line in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    }
    tokens = [
        token
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in FREE and token.start[0] not in docstrings
    ]
    lines = {line for token in tokens for line in range(token.start[0], token.end[0] + 1)}
    return len(lines), len(tokens)


def main() -> int:
    lines, tokens, files = Counter[str](), Counter[str](), Counter[str]()
    for path in sorted(PACKAGE.rglob("*.py")):
        folder = path.relative_to(PACKAGE).parent.as_posix()
        counted = measure(path.read_text(encoding="utf-8"))
        for counter, number in zip((lines, tokens, files), (*counted, 1), strict=True):
            counter[folder] += number
    for folder, number in lines.most_common():
        print(
            f"{number:7,} lines {files[folder]:4} files {tokens[folder] / max(number, 1):5.1f} tokens a line  {folder}"
        )
    total, density = lines.total(), tokens.total() / lines.total()
    print(f"{total:7,} lines {files.total():4} files {density:5.1f} tokens a line  in all")
    over = [
        f"{what} {number:,}, the budget is {budget:,}"
        for what, number, budget in (
            ("lines:", total, LINES),
            ("files:", files.total(), FILES),
            ("tokens a line:", round(density, 2), TOKENS_PER_LINE),
        )
        if number > budget
    ]
    print(*over, sep="\n")
    return bool(over)


if __name__ == "__main__":
    sys.exit(main())
