"""What uses the nodes: `python -m tests.soak.programs.NAME STAGE SEED FILE`, until its input ends."""
