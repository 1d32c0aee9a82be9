"""The journal: what became of each call, in fixed-width records that programs of any kind can read.

    what is written     record header names
    how                 settings, writer (a thread), segments (its files), names, rings
    read again          reading statistics, and topic_text: what a topic is called

A node writes one per worker, the load generator one per process. Nothing here but reading and statistics needs numpy.
"""

from __future__ import annotations
