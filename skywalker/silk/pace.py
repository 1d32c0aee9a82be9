"""How long Silk's membership waits for what, in keepalive periods where nothing else is said."""

from __future__ import annotations

from typing import Final

SILENT: Final = 3
"""Periods of a member without a word from it, after which it is suspected."""

PROBES: Final = 4
"""Questions to a member within the one period that it has from then on: one that is lost proves nothing."""

CROWD: Final = 100
"""Members from which on what all would do at the same moment is spread over a period; of fewer, over a part of it."""

SPREADS: Final = 0.25
"""Part of a period within which all see what one has seen. Who sees others than we do after that is asked whom."""

ASK_AGAIN: Final = 10
"""Periods after which one that sees others is asked all the same, though somebody always comes or goes."""

READ_AGAIN: Final = 60
"""Periods, at most, after which one who still sees others than we do is asked again."""

VISIT_S: Final = 1.0
"""Seconds between attempts to meet somebody at an endpoint, at least, and half of that by luck."""

VISIT_PART: Final = 0.1
"""Part of the time since the first attempt, to which the seconds between them grow: who has been away for long is
waited for in proportion."""

VISIT_CAP_S: Final = 30.0
"""Seconds between attempts, at most, unless there are very many to visit."""

WAIT_S: Final = 3.0
"""Seconds, about, that a message waits for one of very many that failed: for a second connection, if one is lost."""

ARRIVE_S: Final = 1.0
"""Seconds that who joins has to meet all others before it is told that it has joined: one of them may be dead."""

TOLD_S: Final = 4.0
"""Seconds for which a node is sought that others have told of. If it lives, they will tell again."""

FORGET_S: Final = 24 * 3600.0
"""Seconds for which a member is sought that failed: a cut may last."""

LEFT_S: Final = 60.0
"""Seconds for which nobody's word is taken for it that a node which has left is there."""

ANSWER_S: Final = 1.0
"""Seconds, at most, that a member has to answer where only its answer counts; less where its period is shorter."""

REFUSE_S: Final = 0.02
"""Seconds between refusals that need a connection. Who comes in between is told nothing, and asks again."""

QUIET_S: Final = 60.0
"""Seconds for which nobody is looked for on a host where many were in vain: somebody has us knock there."""
