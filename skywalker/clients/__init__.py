"""The client library: pure cores (`calls`, `bus`) under thin shells for threads and for asyncio."""
