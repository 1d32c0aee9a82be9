"""What the pages show is so: their programs and commands are run, each block by itself, in a directory of its own.

A block runs on free ports in place of those by default, with a node on them unless it starts one itself. A block that
begins with a comment which is a file's name is that file, there for the blocks of its page. A page says of a block that
cannot be run why not, in a comment before it: <!-- not run: it needs root -->. One whose prompt is # is root's, on a
machine of its own, and is not run either. Of both kinds, skywalker's own commands are looked at: they must have the
words and options that they are given.

A `python` block runs to its end without an error, and prints what the comments beside its print() say. Of a `console`
block, bash runs the lines that begin with $, and all that they say together, on standard output and standard error, is
what is shown between them. There, and in those comments,
  - `…` stands for any text in a line, and alone on a line, as `...` does, for any number of lines;
  - a number of more than two characters, such as 1.5, 404 or 12:30, may be another, and so may an id of eight or more
    hexadecimal digits; one of one or two digits, such as an exit status, may not;
  - blanks do not count, be there one or many, nor do empty lines.
A `skywalker serve` that shows nothing runs in the background, and what follows waits until its node is there. What
another command in the background says is in its place when those after it do something with it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from skywalker.cli import commands
from tests.docs.pages import DOCS, README, Block, blocks
from tests.docs.running import Ground, matches, run_console, run_python, taken_apart

RUN = {"python": run_python, "console": run_console}

# Of the README, which has no such comments: how a block begins, and why it is not run.
README_NOT_RUN = {
    "$ make demo\n": "tests/cli/test_demo.py runs it",
    "$ make test\n": "that is us",
    "$ make demo-cluster\n": "tests/cli/test_demo_cluster.py runs it",
    "$ skywalker serve --open --bind 10.0.0.1 --silk": "it needs two machines",
    "$ skywalker serve --journal": "it needs traffic",
    "$ sudo python3 -m venv": "it installs, as root",
    "$ skywalker-bench": "a load takes a minute",
    'import skywalker\n\njunction = skywalker.connect("127.0.0.1:3443")': "its halves are two programs",
    'junction = skywalker.connect("silk://': "it needs two machines",
    'junction = skywalker.connect("skywalkers://10.0.0.1"': "it needs another machine",
    "from skywalker import silk": "it needs another machine",
    "jobs = spark.": "tests/pipeline has Spark",
    "junction = await": "it goes on for ever",
}

ROOTS = "it is root's"

NOT_RUN: dict[str, list[str]] = {
    "operations.md": [ROOTS] * 6,
    "security.md": [ROOTS],
}
"""The blocks that are not run, by page, with the reasons that the pages give."""

PAGES = [
    *(DOCS / f"{name}.md" for name in ("architecture", "monitoring", "operations", "protocol", "security")),
    *sorted((DOCS / "errors").glob("*.md")),
]
EXAMPLES = [
    each for page in [*PAGES, README] if page.exists() for each in blocks(page) if each.language in RUN or each.file
]


def is_file(block: Block) -> bool:
    return bool(block.file) and not block.is_roots


def reason(block: Block) -> str:
    """Return why a block is not run; nothing if it is."""
    if block.page == README:
        return next((why for beginning, why in README_NOT_RUN.items() if block.text.startswith(beginning)), "")
    return block.not_run or (ROOTS if block.is_roots else "")


RUNNABLE = [each for each in EXAMPLES if not is_file(each) and not reason(each)]


def commands_of_ours(block: Block) -> Iterator[list[str]]:
    """Yield the words after `skywalker` of each command in a console block."""
    for line in re.findall(r"^[$#] (.+)$", block.text.replace("\\\n", " "), re.MULTILINE):
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
        while words:
            end = next((at for at, word in enumerate(words) if set(word) <= set("&|;<>()")), len(words))
            command = words[words[0] == "sudo" : end]
            if command[:1] == ["skywalker"]:
                yield command[1:]
            words = words[end + 1 :]


def check_words(words: list[str]) -> None:
    """Raise a UsageError for a command or an option that there is not."""
    command: click.Command = commands.skywalker
    context = click.Context(command)
    while True:
        _, words, _ = command.make_parser(context).parse_args(words)
        if not isinstance(command, click.Group):
            return
        name, found, words = command.resolve_command(context, words)
        assert found is not None
        command, context = found, click.Context(found, parent=context, info_name=name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_there(page: Path) -> None:
    assert page.exists()


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    made = Ground()
    yield made
    made.close()


@pytest.mark.parametrize("block", RUNNABLE, ids=str)
def test_an_example_does_what_it_shows(block: Block, tmp_path: Path, ground: Ground) -> None:
    for file in filter(is_file, EXAMPLES):
        if file.page == block.page:
            (tmp_path / file.file).write_text(file.text)
    RUN[block.language](block, tmp_path, ground)


def test_what_is_not_run_is_listed_here_with_its_reason() -> None:
    found: dict[str, list[str]] = {}
    for block in EXAMPLES:
        if block.page != README and reason(block):
            found.setdefault(block.page.name, []).append(reason(block))
    assert found == NOT_RUN
    told = [reason(block) for block in EXAMPLES if block.page == README and reason(block)]
    assert sorted(told) == sorted(README_NOT_RUN.values())


@pytest.mark.parametrize("block", [each for each in EXAMPLES if reason(each) and each.language == "console"], ids=str)
def test_commands_that_are_not_run_have_the_words_that_they_are_given(block: Block) -> None:
    for words in commands_of_ours(block):
        check_words(words)


@pytest.mark.parametrize("words", ["serve --no-such-option", "no-such-command", "silk listen --typo x", "ring --nod a"])
def test_words_that_there_are_not_are_noticed(words: str) -> None:
    with pytest.raises(click.UsageError):
        check_words(words.split())


def test_the_words_of_a_command_end_where_the_shell_has_another() -> None:
    text = (
        "$ a=1\n# cd x && skywalker check y > z | skywalker ping --json &  # skywalker no\n# systemctl stop skywalker\n"
    )
    assert [*commands_of_ours(Block(README, 1, "console", text, ""))] == [["check", "y"], ["ping", "--json"]]


def test_a_file_that_is_shown_is_used() -> None:
    for file in filter(is_file, EXAMPLES):
        assert any(file.file in each.text for each in RUNNABLE if each.page == file.page), str(file)


# The rule itself.


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        ("3", "0"),
        ("", "Traceback"),
        ("a", ""),
        ("a\nb", "a\n…\nb"),
        ("took … ms", "took 2.5 s"),
        ("status 404", "status OK"),
        ("deadbeef", "feedbacc"),
    ],
)
def test_what_must_not_differ_is_noticed(shown: str, said: str) -> None:
    assert not matches(shown.splitlines(), said.splitlines())


def test_a_block_is_taken_apart_into_commands_and_what_they_say() -> None:
    commands, output = taken_apart("$ one \\\n    more\n$ two\nsaid\n$ three\n")
    assert commands == [("one \\\n    more", False), ("two", True), ("three", False)]
    assert output == ["said"]
