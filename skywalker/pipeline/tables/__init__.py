"""Topics as tables: the Spark format "skywalker", to read from and to write to.

source      the format; finding is how both halves get to a node, and to another when it is lost
reading     the options of a read; reader is what Spark calls, at once or on and on: then fed by feeding from a spool
receiving   many calls in flight: slots that are used again and again, and a chunk of values at a time
spool       rows that Spark has not yet committed, in blocks
decoding    values to rows, cell by cell where cells do not fit as they are
writing     the options of a write, and what Spark calls
sending     rows on their way over one connection: a flight
encoding    rows to messages
"""
