"""What a node's settings say of its cluster, and whether there is something for an agent to do."""

from __future__ import annotations

from skywalker.config import Config
from skywalker.errors import ConfigError
from skywalker.members import Member
from workers.control import Channel
from workers.log import Log


def check(config: Config) -> None:
    """Raise ConfigError for settings that contradict each other."""
    chosen = {"--join": config.join, "--dns": config.dns, "--consul": config.consul}
    ways = [flag for flag in chosen if chosen[flag]]
    if len(ways) > 1:
        raise ConfigError(f"{' and '.join(ways)}: a cluster is found in one way")


def needs_agent(config: Config) -> bool:
    """Whether the node is to find others, be found, or answer health checks."""
    return bool(config.join or config.dns or config.consul or config.register or config.health_port)


def hears_of_nodes(config: Config) -> bool:
    """Whether other nodes may make themselves known by a :join."""
    return bool(config.join)


def be_agent(config: Config, member: Member, channel: Channel, log: Log) -> int:
    """Run the agent of a node; return its exit status."""
    # Only here: what it takes is heavy, and no worker needs it.
    from workers.agent import Agent

    raise NotImplementedError(Agent)
