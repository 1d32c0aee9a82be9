"""`skywalker systemd`: the files by which systemd runs a node, made from the settings and for this machine."""
