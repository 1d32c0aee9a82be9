"""What a process of the node runs on.

    loop            what Python does in the core's turns, in which what comes of descriptors and times is written at
                    the end; their handlers; and alarms, which call somebody at a time
    life            a table of states, and of what leads from which to which: whatever has a life has one
    machine         what is asked of the machine: time, luck, readiness, sockets, processes; a simulation is another
                    one
    points          places in the program where a simulation may end or hold up a process
    signals         signals as events of a loop
    sockets         listeners and connections: how they are made and tuned, and who has an address already
    steering        which worker a new connection comes to
    transport       what a connection reads from and writes to, and the one without TLS
    secure_socket   the one with TLS: that of clients and of other nodes ends here
    credentials     how TLS is spoken with the node's certificate and key, and with newer ones once there are any

Uses core and stats.
"""
