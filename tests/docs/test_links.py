"""Links in the Markdown files lead somewhere, and every page can be got to from the README."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import README, ROOT, anchors, links, pages


def target(page: Path, link: str) -> tuple[Path, str]:
    """Return the file and the anchor that a link on a page leads to."""
    path, _, anchor = link.partition("#")
    return ((page.parent / path).resolve() if path else page), anchor


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    lost = []
    for line, link in links(page):
        if "://" in link:
            continue
        file, anchor = target(page, link)
        if not file.exists():
            lost.append(f"{page.name}:{line}: there is no file {link}")
        elif anchor and anchor not in anchors(file):
            lost.append(f"{page.name}:{line}: {file.name} has no heading {anchor!r}")
    assert not lost, "\n".join(lost)


def test_every_page_can_be_got_to_from_the_readme() -> None:
    seen, ahead = {README}, [README]
    while ahead:
        page = ahead.pop()
        for _, link in links(page):
            file, _ = target(page, link)
            if "://" not in link and file.suffix == ".md" and file.exists() and file not in seen:
                seen.add(file)
                ahead.append(file)
    assert not set(pages()) - seen
