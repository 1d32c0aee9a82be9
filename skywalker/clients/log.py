"""Where clients say what befalls them: the logger of the package, which says nothing unless the program wants it."""

from __future__ import annotations

import logging
from typing import Final

log: Final = logging.getLogger("skywalker")
