"""The server. `skywalker` comes first, since it decides whether compiled modules are used."""

import skywalker as skywalker
