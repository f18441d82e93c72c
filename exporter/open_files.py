"""Open files: how many connections we may have. In: a number of replicas. Out: the limit raised, or a sentence.

Each replica takes a connection to its engine and one of its reader, both kept alive. Where they run out, nobody is
answered, so it is said before.
"""

import resource

__all__ = ["raise_limit", "too_few"]

_PER_REPLICA = 3  # the engine, its extra endpoint, the reader
_OTHERS = 100


def raise_limit() -> None:
    """Raise the limit as far as the system lets us; many systems start processes with 1,024 and allow far more."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def too_few(replicas: int) -> str:
    """Say that the limit is too low for so many replicas; empty where it is not."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = _PER_REPLICA * replicas + _OTHERS
    if limit == resource.RLIM_INFINITY or limit >= needed:
        return ""
    return (
        f"{replicas} replicas may need {needed} open files and {limit} are allowed: raise it"
        f" (ulimit -n {needed}; LimitNOFILE= for systemd, ulimits: for Docker), or share the fleet with --shard"
    )
