"""Where a worker stands between its first moments and its end, as all that it has to do with calls must know."""

from __future__ import annotations


class Standing:
    """Of one worker. Several may hold at a time: one that is being replaced drains, and leaves at last."""

    __slots__ = ("draining", "leaving", "node_drains", "opening", "replaced")

    def __init__(self) -> None:
        self.opening = False  # clients are not heard yet: see readiness.py in mesh
        self.draining = False  # new calls of our clients are refused
        self.node_drains = False  # and all other workers of this node do the same
        self.replaced = False  # a successor owns what this worker owned
        self.leaving = False  # others' calls meet nobody here any more
