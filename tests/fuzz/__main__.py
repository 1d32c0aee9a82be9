"""Runs the targets: with atheris each for a time; or with mutations alone, or what was found before.

python -m tests.fuzz [TARGET...] --seconds 60       with atheris, plain, one after the other; what it learns stays
                                                    in .fuzz/corpus, what fails goes to .fuzz/failed
python -m tests.fuzz [TARGET...] --mutate 100000    the seeds, the corpus and so many mutations of them, compiled
                                                    where that is possible, without atheris
python -m tests.fuzz TARGET --replay FILE...        these inputs
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.fuzz.mutations import mutations
from tests.fuzz.targets import LONGEST, NAMES, check_of, inputs_in, seeds_of

FOUND: Final = Path(".fuzz")
INPUT_S: Final = 10
"""Seconds of a processor for one input."""

MEMORY_MB: Final = 2048
"""MiB that a target may take, with all that it has learned."""

LOOK_EVERY: Final = 1000
"""Inputs between looks at the memory."""

MISSING: Final = "atheris is missing, which guides the fuzzing: pip install -r requirements/fuzz.txt"


def main() -> int:
    options = _options()
    targets = options.targets or NAMES
    if options.guided:
        return _guide(targets[0], options.arguments)
    if options.replay:
        return _failures(_check(target, _replayed(options.replay)) for target in targets)
    if options.mutate is not None:
        return _failures(_check(target, _mutated(target, options.mutate, options.seed)) for target in targets)
    if subprocess.run([sys.executable, "-c", "import atheris"], check=False, capture_output=True).returncode:
        sys.exit(MISSING)
    failed = [target for target in targets if not _run(target, options.seconds, options.runs)]
    print(f"failed: {', '.join(failed)}" if failed else "nothing was found")
    return bool(failed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"all if none is given: {', '.join(NAMES)}")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--runs", type=int, default=-1, help="inputs for each target, if that takes less time")
    parser.add_argument("--mutate", type=int, metavar="N", help="do without atheris, with so many mutations")
    parser.add_argument("--seed", type=int, default=1, help="of the mutations")
    parser.add_argument("--replay", type=Path, nargs="+", metavar="FILE", help="inputs to look at again")
    parser.add_argument("--guided", dest="guided", action="store_true", help=argparse.SUPPRESS)
    options, arguments = parser.parse_known_args()
    options.arguments = arguments
    unknown = [target for target in options.targets if target not in NAMES]
    if unknown or (options.arguments and not options.guided):
        parser.error(f"there is no {(unknown or options.arguments)[0]!r}; targets are {', '.join(NAMES)}")
    return options


# With atheris.


def _run(target: str, seconds: int, runs: int) -> bool:
    """Have a process of its own fuzz a target; return whether nothing failed."""
    corpus, failed = FOUND / "corpus" / target, FOUND / "failed"
    corpus.mkdir(parents=True, exist_ok=True)
    failed.mkdir(parents=True, exist_ok=True)
    before = {*failed.iterdir()}
    limits = [f"-max_len={LONGEST}", f"-timeout={INPUT_S}", f"-rss_limit_mb={MEMORY_MB}"]
    command = [
        # Coverage is seen only of what is not compiled.
        *(sys.executable, "-m", "tests.plain", "tests.fuzz", target, "--guided"),
        *(f"-max_total_time={seconds}", f"-runs={runs}"),
        *(*limits, f"-artifact_prefix={failed}/{target}-", "-print_final_stats=1", "-verbosity=0"),
        *(str(corpus), str(seeds_of(target))),
    ]
    print(f"{target}: {seconds} s", flush=True)
    result = subprocess.run(command, text=True, capture_output=True, check=False)
    executed = [line for line in result.stderr.splitlines() if line.startswith("stat::number_of_executed_units")]
    print(f"{target}: {executed[0].split()[-1] if executed else 'unknown'} inputs", flush=True)
    found = sorted({*failed.iterdir()} - before)
    if result.returncode == 0 and not found:
        return True
    print(result.stdout[-4000:], result.stderr[-8000:], sep="\n")
    for path in found:
        print(f"look at it again: {sys.executable} -m tests.fuzz {target} --replay {path}")
    return False


def _guide(target: str, arguments: Sequence[str]) -> int:
    """Have atheris choose the inputs, for ever or until one fails."""
    import atheris  # type: ignore[import-untyped]

    with _silence(), atheris.instrument_imports(include=["skywalker", "workers"]):
        check = check_of(target)
    atheris.Setup([sys.argv[0], *arguments], lambda data: (check(data), None)[1])
    atheris.Fuzz()
    return 0


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Have nothing said of each module that is instrumented."""
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
        yield


# Without.


def _failures(held: Iterable[bool]) -> int:
    """Return how many did not hold, after all were looked at."""
    return [*held].count(False)


def _replayed(paths: Iterable[Path]) -> Iterator[tuple[bytes, str]]:
    return ((path.read_bytes(), str(path)) for path in paths)


def _mutated(target: str, count: int, seed: int) -> Iterator[tuple[bytes, str]]:
    seeds = inputs_in(seeds_of(target))
    sources = [*seeds, *inputs_in(FOUND / "corpus" / target)]
    yield from ((data, f"input {n}") for n, data in enumerate(sources))
    yield from ((data, f"mutation {n}") for n, data in enumerate(mutations(sources, count, seed)))


def _check(target: str, inputs: Iterable[tuple[bytes, str]]) -> bool:
    """Check inputs until one fails, which is kept, and told; say how many there were, and what came of all."""
    check = check_of(target)
    digest = hashlib.sha256()
    began = time.monotonic()
    count = 0
    signal.signal(signal.SIGPROF, _too_slow)
    for data, name in inputs:
        signal.setitimer(signal.ITIMER_PROF, INPUT_S)
        try:
            digest.update(repr(check(data)).encode("utf-8", "surrogatepass"))
            count += 1
            if count % LOOK_EVERY == 0:
                memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
                assert memory_mb < MEMORY_MB, f"it has taken {memory_mb} MiB"
        except Exception:
            traceback.print_exc()
            again = f"{sys.executable} -m tests.fuzz {target} --replay {_keep(target, data)}"
            print(f"{target}: {name} fails; look at it again: {again}", flush=True)
            return False
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    seconds = time.monotonic() - began
    print(f"{target}: {count} inputs, {seconds:.0f} s, {digest.hexdigest()[:16]}", flush=True)
    return True


def _keep(target: str, data: bytes) -> Path:
    path = FOUND / "failed" / f"{target}-{hashlib.sha256(data).hexdigest()[:16]}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def _too_slow(*_: object) -> None:
    raise TimeoutError(f"it takes longer than {INPUT_S} s")


if __name__ == "__main__":
    sys.exit(main())
