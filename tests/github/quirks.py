"""Switches for what GitHub, its limits and the network do to a client on bad days."""

import re
from dataclasses import dataclass, field
from typing import Literal

FaultKind = Literal[
    "502 before",  # nothing has happened
    "502 after",  # the effect is there, and the client does not learn of it
    "hangs up before",
    "hangs up after",
    "500",
    "503",
    "401",
    "404",
    "403 secondary",
    "429",
    "403 primary",
    "html",  # a load balancer's page instead of JSON, status 200
    "slow",
]


@dataclass
class Fault:
    """What befalls the next requests that match."""

    kind: FaultKind
    method: str = ""
    """Empty for every method; several are divided by a bar: ``POST|PATCH``."""
    path: str = ""
    """A regular expression, searched for in the path."""
    times: int = 1
    retry_after_s: int | None = None
    """For ``403 secondary`` and ``429``: the header, and until then each request gets the same."""
    slow_s: float = 1.0
    hits: int = 0

    def matches(self, method: str, path: str) -> bool:
        """Return whether this request is hit."""
        fits = not self.method or method in self.method.split("|")
        return self.hits < self.times and fits and re.search(self.path, path) is not None


@dataclass
class Quirks:
    """All are off, or as on a good day, at first; a test changes fields at any time."""

    faults: list[Fault] = field(default_factory=list)
    """The first that matches a request hits it."""
    most_per_page: int = 100
    """2 makes every list come in pages."""
    shifted_pages: bool = False
    """Something new has pushed a list's last entry on to the next page, where it comes again."""
    mergeable_after_looks: int = 0
    """So many looks at a changed pull request find `mergeable` null; GitHub computes it then."""
    hidden_looks: int = 0
    """So many GETs of a thing just made find 404."""
    stale_lists: int = 0
    """So many lists after something is made lack it."""
    etags: bool = True
    token_life_s: float = 3600.0
    requests_per_hour: int = 5000
    """The primary limit: 403 with ``x-ratelimit-remaining: 0`` and no Retry-After."""
    writes_per_minute: int | None = None
    """The secondary limit on what makes content: 80 at GitHub."""
    writes_per_hour: int | None = None
    """500 at GitHub."""
    points_per_minute: int | None = None
    """The secondary limit on all, where a GET is a point and a write five: 900 at GitHub."""
    says_retry_after: bool = True
    """Whether a secondary limit comes with the header Retry-After."""
    secondary_status: Literal[403, 429] = 403
    drop_deliveries_every: int = 0
    """Each so-manieth webhook is never sent; 0 for none."""
    double_deliveries_every: int = 0
    """Each so-manieth is sent twice."""
    reorder_deliveries: bool = False
    """Webhooks overtake each other: of two, the later is sent first."""
    associations_mislead: bool = False
    """`author_association` says NONE of people with rights, as of private members, and MEMBER of
    people without, who are in the organisation only."""
    knows_drafts: bool = True
    """A private repository of a smaller plan has none: 422."""
    suspended: bool = False
    """The App's installation is: it gets no tokens, and those that it has are refused."""
    archived: bool = False
    """The repository can only be read."""
    foreign_urls: bool = False
    """Bodies carry URLs of api.github.com rather than the server's own."""

    def pick(self, method: str, path: str) -> Fault | None:
        """Return the fault that hits a request, and count the hit."""
        for fault in self.faults:
            if fault.matches(method, path):
                fault.hits += 1
                return fault
        return None
