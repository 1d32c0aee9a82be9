"""What uses the nodes: `python -m tests.soak.programs.NAME STAGE SEED`, until its input ends."""
