"""The Markdown files of the project, taken apart: code blocks, links, and the anchors that links may lead to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"

_FENCE = re.compile(r"^( *)```(\w*)$")
_NOT_RUN = re.compile(r"^<!-- not run: (.+) -->$")
_FILE = re.compile(r"^# ([\w.@-]+\.\w+)$")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)|\bsrc(?:set)?=\"([^\"]+)\"")


@dataclass(frozen=True)
class Block:
    """A code block; `not_run` is the reason that the page gives for that, if it gives one."""

    page: Path
    line: int  # of its first line
    language: str
    text: str
    not_run: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def is_roots(self) -> bool:
        """Whether its prompt is that of root."""
        return self.language == "console" and self.text.startswith("# ")

    @property
    def file(self) -> str:
        """The name of the file that this block is, if it begins with a comment that is one."""
        named = _FILE.match(self.text.partition("\n")[0])
        return named[1] if named else ""


def pages() -> list[Path]:
    """Return every Markdown file."""
    return [README, ROOT / "SECURITY.md", *sorted(DOCS.rglob("*.md"))]


def blocks(page: Path) -> list[Block]:
    """Return the code blocks of a page."""
    found: list[Block] = []
    reason = ""
    lines = enumerate(page.read_text().splitlines(), 1)
    for number, line in lines:
        if fence := _FENCE.match(line):
            indent, language = fence.groups()
            inside: list[str] = []
            for _, each in lines:
                if each == f"{indent}```":
                    break
                inside.append(each.removeprefix(indent))
            else:
                raise AssertionError(f"{page}:{number}: this block has no end")
            found.append(Block(page, number + 1, language, "".join(f"{each}\n" for each in inside), reason))
            reason = ""
        elif line.strip():
            marker = _NOT_RUN.match(line.strip())
            reason = marker[1] if marker else ""
    return found


def prose(page: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a page, with their numbers, that are in no code block."""
    inside = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            inside = not inside
        elif not inside:
            yield number, re.sub(r"`[^`]*`", lambda code: re.sub(r"[\[\]()]", " ", code[0]), line)


def links(page: Path) -> Iterator[tuple[int, str]]:
    """Yield where the links and pictures of a page lead, with the numbers of their lines."""
    # A link may be broken over two lines of a paragraph.
    lines = dict(prose(page))
    text = "\n".join(lines.get(number, "") for number in range(1, max(lines) + 1))
    for link in _LINK.finditer(text):
        yield text.count("\n", 0, link.start()) + 1, link[1] or link[2]


def anchors(page: Path) -> set[str]:
    """Return what may follow a # in a link to a page, as GitHub makes it of headings."""
    found: set[str] = set()
    for _, line in prose(page):
        heading = re.match(r"^#+ (.+)$", line)
        if heading:
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).replace("`", "")
            anchor = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
            number = 0
            while (unique := f"{anchor}-{number}" if number else anchor) in found:
                number += 1
            found.add(unique)
    return found
