"""What is asked of the records of calls: each job is a function from tables to a table.

    ingest                       segments of a journal, made into Parquet once each
    latency topics balance       how long, about what, by whom
    forwarding timeouts          who was at the wrong worker, and who met nobody
    unmatched capacity           who should have met, and what it all takes
    condense                     many calls made into few rows, on which the others work as well

A table of calls has the columns that the source "skywalker-journal" gives, and jobs read as few of
them as they can. A row stands for `sample` calls; nothing counts rows.
"""

from __future__ import annotations
