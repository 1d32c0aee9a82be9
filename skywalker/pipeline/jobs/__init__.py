"""What is asked of the records of calls: each job is a function from tables to a table.

    ingest                       segments of a journal, made into Parquet once each
    latency topics balance       how long, about what, by whom
    forwarding timeouts          who was at the wrong worker, and who met nobody
    unmatched capacity           who should have met, and what it all takes

    inputs                       where the calls are: a journal, or what ingest made of one
    counts                       calls counted, told apart, and condensed to few rows on which jobs work as well
    owners                       a ring that is known, asked for the owners of topics
    defaults                     what holds where nothing else is said, for the command line too

A table of calls has the columns that the source "skywalker-journal" gives, and jobs read as few of
them as they can. A row stands for `sample` calls; nothing counts rows.
"""

from __future__ import annotations
