"""The asyncio client. What says the same to threads is written here, and made from this: see `.ci/faces`."""
