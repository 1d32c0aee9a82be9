"""Pictures of the console, light and dark, at a node that works: `python -m bench.console_picture`.

It is one of three nodes under the load of bench.load, while a few programs wait on topics of names that one can read.
The picture is of the last minutes, so that it takes as long.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import click
from playwright.sync_api import Browser, sync_playwright

import skywalker
from bench.errors import BenchError
from bench.figures.command import Findings, command, show_progress
from bench.load.plan import Load
from bench.load.run import run
from bench.servers import skywalker as skywalker_nodes
from skywalker.embedding import Node
from skywalker.errors import SkywalkerError

NAMES: Final = ("red", "green", "blue")
WAITING: Final = {
    "orders.eu": 5, "orders.us": 3, "orders.apac": 2, "mail.out": 4, "mail.bounced": 1, "thumbnails": 2,
    "invoices.print": 1, "invoices.void": 1, "audit": 2, "refunds": 3, "search.index": 2, "sms.out": 1,
}  # fmt: skip
"""Programs that wait on each topic."""

RATE: Final = 4000
"""Calls to send a second, and half as many more for a third of the time."""

TAKING_S: Final = 30.0
"""Seconds for which the load goes on while pictures are taken."""

CHROMIUM: Final = ("chromium", "chromium-browser", "google-chrome")

_Scheme = Literal["light", "dark"]

WIDTH: Final = 1280
HEIGHT: Final = 1160


def cluster() -> contextlib.AbstractContextManager[list[Node]]:
    """Run three nodes that know each other, the first one with a console."""
    console: dict[str, Any] = {"admin": True, "admin_port": 0}
    return skywalker_nodes.cluster(
        *({"workers": 2, "name": name, **(console if name == NAMES[0] else {})} for name in NAMES)
    )


def console_url(node: Node) -> str:
    """Return where a node's console is."""
    for line in node.log.splitlines():
        for field in line.split():
            if field.startswith("admin="):
                return f"http://{field.removeprefix('admin=')}/"
    raise BenchError("the node does not say where its console is")


@contextlib.contextmanager
def waiting(node: Node, seconds: float) -> Iterator[None]:
    """Have programs wait on topics for the length of a `with` block, and longer than `seconds`."""
    with contextlib.ExitStack() as stack:
        for topic, programs in WAITING.items():
            for number in range(programs):
                client = stack.enter_context(node.connect(name=f"{topic.partition('.')[0]}-{number + 1}"))
                threading.Thread(target=_wait, args=(client, topic, seconds + 60), daemon=True).start()
                time.sleep(0.05)  # they did not all come at once
        yield


def _wait(client: skywalker.Client, topic: str, seconds: float) -> None:
    with contextlib.suppress(SkywalkerError):  # it is over
        client.recv(topic, timeout=seconds)


def load(node: Node, prefix: str, rate: float, after_s: float, seconds: float) -> threading.Thread:
    """Have another thread put a load on a node after a while, for so long."""

    def work() -> None:
        time.sleep(after_s)
        run(Load(host=node.host, port=node.port, prefix=prefix, pairs=12, in_flight=16, rate=rate), seconds)

    thread = threading.Thread(target=work, name=prefix, daemon=True)
    thread.start()
    return thread


def take(browser: Browser, url: str, files: Mapping[_Scheme, Path]) -> None:
    """Save a picture of the console at a URL in each colour scheme, once it shows all nodes."""
    for scheme, file in files.items():
        with browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=2, color_scheme=scheme
        ) as page:
            page.goto(url)
            page.wait_for_selector(f"#members tbody :nth-child({len(NAMES)} of tr:not(.empty))")
            page.wait_for_timeout(1500)  # until all has been asked for that is shown
            _save(page.screenshot(), file)


def _save(png: bytes, file: Path) -> None:
    try:
        from PIL import Image
    except ImportError:
        file.write_bytes(png)
        return
    # It has few colours, and takes half the space if it names them.
    Image.open(io.BytesIO(png)).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(file, optimize=True)


@command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path), default="docs")
@click.option("--seconds", type=click.FloatRange(1), default=315.0, help="how long it works first")
def main(directory: Path, seconds: float) -> Findings:
    """Write console.png and console-dark.png to DIRECTORY."""
    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if program is None:
        raise BenchError("the console needs a browser: Chromium, on Debian: apt-get install chromium")
    with cluster() as nodes, waiting(nodes[0], seconds):
        loads = [
            load(nodes[0], "base", RATE, 0.0, seconds + TAKING_S),
            load(nodes[0], "more", RATE / 2, seconds * 0.57, seconds / 3),
        ]
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            show_progress(f"{left:.0f} s until the pictures are taken")
            time.sleep(min(1.0, left))
        show_progress("")
        files: dict[_Scheme, Path] = {"light": directory / "console.png", "dark": directory / "console-dark.png"}
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            take(browser, console_url(nodes[0]), files)
            browser.close()
        for thread in loads:
            thread.join()
    return Findings(map(str, files.values()))


if __name__ == "__main__":
    main()
