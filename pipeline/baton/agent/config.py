"""What the reference agent's server needs to know."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """All bounds of one server. Raises ValueError where the token is empty or a bound makes no sense."""

    token: str = field(repr=False)
    """The bearer token that invocations must carry."""
    host: str = "127.0.0.1"
    port: int = 0
    """0 takes a free one."""
    workers: int = 4
    """Runs worked on at once."""
    backlog: int = 200
    """Accepted runs that may wait; beyond it invocations are answered 429."""
    retry_after: int = 2
    """Seconds named in the Retry-After of a 429."""
    connections: int = 128
    """Connections open at once; beyond it they are answered 503 unread."""
    request_seconds: float = 10.0
    """Longest time in which a request must have been read, whatever the pace of its bytes."""
    remembered: int = 100_000
    """Finished runs that are remembered; the oldest are forgotten first."""
    ledger: Path | None = None
    """File that keeps finished runs over a restart; None forgets them."""
    input_bytes: int = 64 * 1024 * 1024
    """Largest input that is fetched."""
    fetch_seconds: float = 60.0
    """Longest time for fetching one input."""
    connect_timeout: float = 5.0
    """Seconds for a connection to the object store."""
    read_timeout: float = 15.0
    """Seconds for the next bytes from the object store."""
    first_backoff: float = 0.5
    """Seconds before a failed fetch or delivery is tried again; doubled each time."""
    longest_backoff: float = 30.0
    """Upper bound of that wait, in seconds."""
    misbehave: bool = False
    """Opens `/misbehave`, for trials only."""

    def __post_init__(self) -> None:
        if not self.token or not self.token.isascii() or not self.token.isprintable():
            raise ValueError("the agent's token must be printable ASCII and not empty")
        for name in ("workers", "backlog", "connections", "remembered", "input_bytes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
