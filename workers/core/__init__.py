"""A worker in C over flat tables: its connections, frames, calls, links, timers, turns.

It knows no Python. core.h is the map of it: which file has what, in which order to read them, and who frees what.

    *.c, *.h          the core
    _core.pyi         what Python sees of it, and what each thing there is for
    _core.pyx         the way in, with the .pxi files: _upcalls what the core asks of Python, _links what Python has
                      links do, _simulated a machine in place of the kernel, _failing what follows once Python raises
    _c.pxd            what Cython is to know of the headers

Python is asked for what is rare: how a connection comes in, other methods, errors. Clients in doors/clients.py has the
methods of Rare, Links in mesh/links.py those of Linking, and Turn in engine/loop.py is the Moment.
"""
