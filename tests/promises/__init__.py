"""What is promised to clients, as rules that judge a history, whether that was simulated or really happened.

history    what clients said and heard, and what troubled the cluster meanwhile
rules      what must hold of that
excuses    what does not have to hold, because of which trouble
libraries  what must hold besides of those who use our client libraries
record     how a call of theirs has ended
"""
