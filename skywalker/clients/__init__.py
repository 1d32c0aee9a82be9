"""The client library: cores that know no socket, clock or thread, and drivers that run them.

what programs call      junction, client and serving: written in aio/, and made from that in blocking/
what runs calls         aio/ and blocking/: driver over any core, line_driver over connections, host for serve()
connections             blocking/: connection, dialer, directs; sockets; machine: luck, and where they come from
a core                  core: what a driver needs of it; call, stream; bus: in process; calls: over connections
below calls             dialogue: frames and outcomes; line; requests; routes: direct lines; homes: where to dial;
                        survey: who is there
what is said            news; wrong_door, unsendable: why something cannot be; rpc: requests and answers
what connect() is told  settings, tls_choice
forks                   fork_check: whether this is the copy of a process
"""
