"""Topics as tables: the Spark format "skywalker", to read from and to write to.

source      the format; address and finding are how both halves get to a node, and to another when it is lost
reading     the options of a read, which is at once (reader) or goes on and on (stream, fed by feeding from a spool,
            in a process that feeder starts)
receiving   many calls in flight: slots that are used again and again, and a chunk of values at a time
spool       rows that Spark has not yet committed, in blocks
decoding    values to rows, cell by cell where cells do not fit as they are
writing     the options of a write; writer is what Spark calls
sending     rows on their way over one connection: a flight
encoding    rows to messages; extensions are what both directions have to look at twice
"""
