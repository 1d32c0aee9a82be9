"""Where the nodes of a cluster are: sources of addresses, and keeping our own known to others."""
