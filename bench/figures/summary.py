"""What a load test says to people: a line while it runs, and a page at its end."""

from __future__ import annotations

from collections.abc import Iterator

from bench.load.outcome import PERCENTILES, Outcome
from bench.load.plan import Load
from bench.servers.usage import Usage

LABEL = 11
MIB = 1024 * 1024


def progress_of(outcome: Outcome) -> str:
    """Return in a line the last second's rate, and the latency and errors so far."""
    last = outcome.timeline[-1]
    words = f"{outcome.seconds:4.0f} s  {last.rate:>11,.0f} rendezvous/s  p99 {time_of(outcome.percentile_us(99))}"
    return f"{words}  {sum(outcome.errors.values()):,} errors"


def lines(outcome: Outcome, node: str) -> Iterator[str]:
    """Yield the page about a load test on `node`, line by line."""
    yield ""
    yield _row("node", node)
    yield _row("load", described(outcome.load, outcome.generators))
    early = ", ended early" if outcome.interrupted else ""
    yield _row("measured", f"{outcome.seconds:.1f} s after {outcome.warm_up_s:g} s of warm-up{early}")
    yield ""
    asked = f", asked for {outcome.load.rate:,.0f}" if outcome.load.rate else ""
    yield _row("rate", f"{outcome.rate:>11,.0f}  rendezvous/s{asked}")
    if outcome.load.shared:
        yield _row("received", f"{outcome.total.received:>11,}  values, of {outcome.total.sent:,} sent")
    for percent in PERCENTILES:
        since = ("a send! was due" if outcome.load.rate else "a send! was made") if percent == 50 else ""
        label = "max" if percent == 100 else f"p{percent:g}"
        yield _row(label, f"{time_of(outcome.percentile_us(percent)):>14}{f'  since {since}' if since else ''}")
    yield _row("errors", ", ".join(f"{count:,} {code}" for code, count in outcome.errors.items()) or "none")
    if outcome.total.moved:
        yield _row("moved", f"{_counted(outcome.total.moved, 'connection')}, whose worker was leaving")
    if outcome.forwarded is not None:
        yield _row("forwarded", f"{outcome.forwarded:.0%} of the calls, from one worker to another")
    yield ""
    if outcome.server:
        yield from usage_lines(outcome.server)
        if outcome.rate_per_core:
            yield _row("", f"{outcome.rate_per_core:,.0f} rendezvous per core-second of the server")
    yield _row("generator", f"{outcome.generator_cores:.2f} cores")
    for warning in outcome.warnings():
        yield ""
        yield _row("note", warning)
    yield ""


def described(load: Load, generators: int) -> str:
    """Return in a line what a load is."""
    words = [
        f"{_counted(load.pairs, 'pair')} x {load.in_flight} in flight",
        f"{load.rate:,.0f} a second" if load.rate else "closed loop",
        f"{load.value_bytes}-byte values",
        *([f"{_counted(load.topic_count, 'topic')} shared"] if load.shared else []),
        *([f"{load.dialect} dialect"] if load.dialect != "current" else []),
        "direct to owners" if load.direct else "through any worker",
        _counted(generators, "generator"),
    ]
    return ", ".join(words)


def usage_lines(usage: Usage) -> Iterator[str]:
    """Yield what each process of a server uses."""
    memory = sum(process.own_bytes or process.resident_bytes for process in usage.processes)
    yield _row("server", f"{usage.cores:.2f} cores, {memory / MIB:,.0f} MiB of its own")
    yield _row("", f"{'pid':>8}  {'cores':>6}  {'resident':>10}  {'its own':>10}  process")
    for process in usage.processes:
        own = "" if process.own_bytes is None else f"{process.own_bytes / MIB:,.1f} MiB"
        resident = f"{process.resident_bytes / MIB:,.1f} MiB"
        yield _row("", f"{process.pid:>8}  {process.cores:>6.2f}  {resident:>10}  {own:>10}  {process.name}")


def time_of(us: float | None) -> str:
    """Return microseconds as people read them, with three digits."""
    if us is None:
        return "-"
    for unit, size in (("us", 1.0), ("ms", 1e3), ("s", 1e6)):
        if us < 1000 * size or unit == "s":
            number = us / size
            return f"{number:.{0 if number >= 100 or unit == 'us' else 1 if number >= 10 else 2}f} {unit}"
    raise AssertionError(us)


def _row(label: str, text: str) -> str:
    return f"  {label:<{LABEL}}{text}".rstrip()


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
