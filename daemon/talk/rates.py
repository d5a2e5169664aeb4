"""How often people are heard, and how often they are told that they are not."""

from daemon.talk.commands import Stop, parse
from optimizer.store import Store, StoredCommand

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
_MOST_STOPS = 100


def is_beyond_rate(command: StoredCommand, store: Store, *, most: int) -> bool:
    """Return whether its author had given as many commands as one may in the hour before it.

    The answer is the same whenever it is asked. ``/stop`` is never beyond it, and not counted.
    """
    if isinstance(parse(command.text), Stop):
        return False
    since = command.received_at - HOUR_S
    earlier = store.earlier_commands(command, since=since, limit=most + _MOST_STOPS)
    return sum(not isinstance(parse(other.text), Stop) for other in earlier) >= most


def take_reply(store: Store, what: str, command: StoredCommand, *, every_s: float) -> bool:
    """Return whether somebody is to be told something in a comment now, and count that.

    Args:
        store: Remembers it.
        what: Of what there is one reply in `every_s`, such as a kind of reply to a person.
        command: What the reply is to; for it, the answer stays the same.
        every_s: How often.
    """
    at, _, by = (store.recall(f"replied/{what}") or "").partition(" ")
    if by == str(command.id):
        return True
    if at and 0 <= command.received_at - float(at) < every_s:
        return False
    store.mark(f"replied/{what}", f"{command.received_at:.3f} {command.id}")
    return True
