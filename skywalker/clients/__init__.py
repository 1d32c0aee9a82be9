"""The client library: cores that know no socket, clock or thread, and drivers that run them.

what programs call      junction, client, local and serving: written in aio/, and made from that in blocking/
what runs calls         aio/ and blocking/: driver over any core, line_driver over connections, host for serve()
connections             aio/: link; blocking/: connection, tls_connection, dialer, opening, directs, leading; sockets
a core                  core: what a driver needs of it; call, stream; bus: in process; calls: over connections
below calls             exchange: frames and outcomes; order: which line a call is put on; stays; line; requests;
                        routes, way, view: direct lines; homes: where to dial; survey, pages: who is there; silence
what is said            news, log; no_node, wrong_door, unsendable: why something cannot be; rpc: requests and answers
what connect() is told  settings, tls_choice
forks                   process
"""
