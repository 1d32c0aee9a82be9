"""What two workers say to each other, of one node or of two: kinds of messages. workers/core/message.c writes them.

Between nodes a message is a frame as clients send them, with a length of 32 bits: an array of a kind, the number
that the asking side gave to the call, and what the kind needs. What clients sent is in it as the very bytes that came.
A number is nine bytes: CF, or D3 if the owner of the topic gave it, 00, and seven more; so is a life. `since` is a
float that counts from now, and is never above 0. Between siblings all is flat, and `since` is on the clock they share.

    to the owner of the topic                       to the worker of the caller
      SEND no since topic value                       GIVE no value       for this listener
      LISTEN no since topic group-or-nil              ALSO no             the value given last, for this one too
      WITHDRAW no final unless it met somebody        MET no              a send has been taken, a publish handed out
      TOOK no           the listener has its value    WITHDRAWN no        it had met nobody, if that was not final
      LOST no           the listener is gone          BUSY no             no room for it to wait
      LONG no limit     it takes no more than that    REFUSED no limit    who listens takes no more than that
      UNACKED no is-so  its client is to acknowledge the value that it has; false, if that was given back
      CENSUS no topic                                 COUNTED no info
                                                      RECALL no           unless its client has the value
      PUBLISH no topic value form-or-nil
      SUBSCRIBE topic count                           SUBSCRIBED topic    so many subscribe now
      SETTLED nil       that was all from before      RETIRED nil       no more is handed out here, but by a successor
                                                      OFFER topic no-or-nil value form-or-nil
                                                      LAGGED topic        some values were too many, and are lost
                                                      PARTING nil         this end goes, as is planned
      VISIT no whom     it is being replaced, and is to go to that new worker of another node: COUNTED once it has

Within a node, GIVE and OFFER say whose the value is, so that whoever gives it to a client tells the sender's worker.
Then nobody waits for TOOK, which is said with what is said next, or after a while (UNSAID_S in link.c). And who asks
for what became of a dead one's is COUNTED once that is told. `life` is a worker's.

      TAKEN no life     somebody has the value of the send which waits by that number at the worker of that life
      DOUBT no life     somebody may have it, of whom nobody will hear; nil is who says so, which goes to another node,
                        too, where a release that does not know the word passes over it
      OUT no life       the value was given to another node, or to a client that is to acknowledge it, of the worker of
                        that life, or of ours if it is nil: nobody else would hear what becomes of that
      INQUIRE no life   that worker is dead

A connection follows its calls to the worker that owns their topics; moving.c has what its parts look like.

      MOVE no facts calls           the connection of that number would come, with these calls, which wait there already
      MOVED no there numbers        it is that one there, nil if it may not come; and these calls are its own now
                                    both may only be to know, of no connection yet, whether the other does not hang
                                    nil for one that had come is lost
      REST there call so            a call that comes along, and waits nowhere; or so one that was given a value there
      ARRIVE there so tail          here is its descriptor, in the same packet, or it is lost; so much is half read

Its subscriptions go by way of those who own their topics, which are siblings as well; splits.py has how.

      SPLIT no topic life           the one of that number, of the worker of that life, is to end there and begin here;
                                    this comes behind SUBSCRIBE
      CUT no life                   it does, with what comes behind this

Two workers without a connection of their own are linked through one that has: nodes/relayed.py has the words.

      RELAY no word     of a stream, by the number of the side that has opened it, or as an owner's by the other

The values that subscribers get are OFFERs; one whose sender waits for an outcome has a number, of
ours, and TOOK or LOST answer it. One that the other end published has the number of that PUBLISH.
`form` is the hint and the flags that something was published with, and the payload if that is
compressed; the value is nil then.
"""

from __future__ import annotations

from typing import Final

SEND: Final = 1
LISTEN: Final = 2
WITHDRAW: Final = 3
TOOK: Final = 4
LOST: Final = 5
PUBLISH: Final = 6
SUBSCRIBE: Final = 7
CENSUS: Final = 8
GIVE: Final = 9
ALSO: Final = 10
MET: Final = 11
WITHDRAWN: Final = 12
BUSY: Final = 13
COUNTED: Final = 14
RECALL: Final = 15
OFFER: Final = 16
SUBSCRIBED: Final = 17
LAGGED: Final = 18
SETTLED: Final = 19
PARTING: Final = 20
RETIRED: Final = 21
LONG: Final = 22
REFUSED: Final = 23
VISIT: Final = 24
TAKEN: Final = 26
DOUBT: Final = 27
OUT: Final = 28
INQUIRE: Final = 29
UNACKED: Final = 30
MOVE: Final = 31
MOVED: Final = 32
REST: Final = 33
ARRIVE: Final = 34
RELAY: Final = 35
SPLIT: Final = 36
CUT: Final = 37
