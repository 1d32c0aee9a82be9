"""Fuzzing: bytes from strangers, and what must hold whatever they are.

    fuzz_*.py     the targets: each a check_input(data), which returns what came of an input, and raises if its
                  invariant does not hold
    seeds/        what they begin with, in a directory for each, made by making.py from real conversations
    __main__.py   runs them: with atheris, which learns from the lines that are reached; or by mutations alone,
                  which needs nothing installed and does the same each time
    asan.sh       the compiled modules under AddressSanitizer

What the targets share: targets.py finds them and their seeds, draw.py reads an input as numbers and bytes,
mutations.py makes inputs of others, twins.py has a module compiled and plain, memory.py a worker that has neither
sockets nor a clock, and talks.py what happens to it. Nothing but __main__.py knows atheris.
"""
