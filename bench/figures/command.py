"""What the commands of the benchmarks have in common: their options, and where what they found goes."""

from __future__ import annotations

import functools
import itertools
import json as json_format
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from bench.errors import BenchError
from bench.figures import targets
from bench.figures.picture import FORMATS
from skywalker.errors import SkywalkerError


def show_progress(words: str) -> None:
    """Put `words` in place of what was shown before; none to leave the line clean."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{words}", end="", file=sys.stderr, flush=True)


def split_page(file: Path, name: str) -> tuple[str, str]:
    """Return what stands before and after the place of `name` in a page; a page that is not there yet has nothing else.

    Raises BenchError for a page without the marks, or that cannot be read.
    """
    begin, end = _marks(name)
    try:
        page = file.read_text() if file.exists() else ""
    except OSError as error:
        raise BenchError(f"cannot read {file}: {error.strerror}") from error
    if not page:
        return "", "\n"
    before, began, rest = page.partition(begin)
    _, ended, after = rest.partition(end)
    if not (began and ended):
        raise BenchError(f"{file} has no place for the table; put these marks where it belongs: {begin} {end}")
    return before, after


def put_in_page(file: Path, name: str, lines: Iterable[str]) -> None:
    """Write `lines` between the marks of `name` in a page. Raises BenchError."""
    before, after = split_page(file, name)
    begin, end = _marks(name)
    text = "\n".join(lines)
    try:
        file.write_text(f"{before}{begin}\n{text}\n{end}{after}")
    except OSError as error:
        raise BenchError(f"cannot write {file}: {error.strerror}") from error


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- begin {name} -->", f"<!-- end {name} -->"


CONTEXT: Final = {"help_option_names": ["-h", "--help"], "show_default": True}

RUNS: Final = click.IntRange(1, 1000)
SECONDS: Final = click.FloatRange(0.1, 3600)


class Findings(NamedTuple):
    """What a command found."""

    lines: Iterable[str]
    data: Any = None  # as JSON has it
    pages: Mapping[str, Iterable[str]] = {}  # by place
    draw: Callable[[Path], None] | None = None
    targets: Sequence[targets.Target] = ()  # shown below the lines, and at the place "targets of" the first one, if any


class Picture(click.ParamType[Path]):
    """A file to draw to."""

    name = "FILE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(value)
        if path.suffix not in FORMATS:
            self.fail(f"{str(value)!r} does not end in {' or '.join(FORMATS)}", param, ctx)
        if not path.parent.is_dir():
            self.fail(f"there is no directory {str(path.parent)!r}", param, ctx)
        return path


_JSON: Final = click.option(
    "--json", "json_file", type=click.File("w"), metavar="FILE", help="Also write everything as JSON."
)
_MARKDOWN: Final = click.option(
    "--markdown",
    "pages_",
    type=click.Path(dir_okay=False, path_type=Path),
    multiple=True,
    metavar="FILE",
    help="Also put the tables into a page, between marks; may be repeated.",
)
_PLOT: Final = click.option("--plot", "plot_file", type=Picture(), help="Also draw it, to a .png or .svg.")


def command(
    *,
    runs: int = 0,
    seconds: float = 0.0,
    quick: float = 0.0,
    json: bool = False,
    markdown: Sequence[str] = (),
    plot: bool = False,
) -> Callable[[Callable[..., Findings]], click.Command]:
    """Make a function a command with the options that are named here, besides its own. It returns Findings.

    `runs` and `seconds` are defaults; `quick` are the seconds of its one run where that has to be quick. Without `runs`
    there are none of the three. `markdown` are the places that a page must have.
    """
    first: list[Any] = []
    last: list[Any] = []
    if runs:
        first += [
            click.option("--runs", type=RUNS, default=runs, help="Runs, of which medians are taken."),
            click.option("--seconds", type=SECONDS, default=seconds, help="Length of each measurement."),
        ]
    if quick:
        words = f"One run of {quick:g} seconds each: shows that it works, not how fast."
        last += [click.option("--quick", is_flag=True, help=words)]
    last += [*([_JSON] if json else []), *([_MARKDOWN] if markdown else []), *([_PLOT] if plot else [])]

    def decorate(function: Callable[..., Findings]) -> click.Command:
        @functools.wraps(function)
        def ran(
            json_file: Any = None, pages_: Sequence[Path] = (), plot_file: Path | None = None, **options: Any
        ) -> None:
            if options.pop("quick", False):
                options |= {"runs": 1, "seconds": quick}
            try:
                for page, place in itertools.product(pages_, markdown):
                    split_page(page, place)  # raises for one without that place, before all the work
                _publish(function(**options), json_file, pages_, plot_file, markdown)
            except (BenchError, SkywalkerError) as error:
                raise click.ClickException(str(error)) from error
            finally:
                show_progress("")

        own = ran.__dict__.pop("__click_params__", [])
        for option in reversed(last):
            option(ran)
        ran.__dict__.setdefault("__click_params__", []).extend(own)
        for option in reversed(first):
            option(ran)
        return click.command(context_settings=CONTEXT)(ran)

    return decorate


def several(flag: str, name: str, choices: Collection[str], words: str) -> Callable[[Any], Any]:
    """Make an option that may be repeated; the command gets a tuple, of all `choices` if none was given."""
    return click.option(
        *(flag, name),
        type=click.Choice(list(choices)),
        multiple=True,
        callback=lambda context, option, given: given or tuple(choices),
        help=f"{words}; may be repeated.  [default: all]",
    )


def fenced(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines as a page has them that shows what a command prints."""
    yield "```text"
    yield from lines
    yield "```"


def _publish(
    found: Findings, json_file: Any, pages_: Sequence[Path], plot_file: Path | None, places: Sequence[str]
) -> None:
    lines = list(found.lines)
    pages = {place: list(text) for place, text in found.pages.items()}  # there may be several pages
    if found.targets:
        lines += ["", *targets.lines(found.targets)]
        pages |= {f"targets of {place}": list(targets.page(found.targets)) for place in [*pages][:1]}
    show_progress("")
    click.echo("\n".join(lines))
    if json_file is not None:
        write_json(found.data, json_file)
    for page in pages_:
        for place, text in pages.items():
            if place in places or _marks(place)[0] in page.read_text():
                put_in_page(page, place, text)
    if plot_file is not None and found.draw is not None:
        found.draw(plot_file)


def write_json(data: Any, file: Any) -> None:
    """Write data to a file."""
    json_format.dump(data, file, indent=2)
    file.write("\n")
