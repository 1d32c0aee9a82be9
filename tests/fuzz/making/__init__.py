"""Makes the seeds: python -m tests.fuzz.making. What programs really say to each other, as each target has it."""
