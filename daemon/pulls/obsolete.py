"""Whether an open pull request is still wanted (pure)."""

from daemon.forge import PullRequest
from knowledge.evidence import Evidence
from operator_registry.registry import Registry

Pair = tuple[str, str]


def find_reason(
    pair: Pair, operator_digest: str | None, registry: Registry, *, is_pending: bool
) -> str | None:
    """Return why nobody needs a pull request any more, by what the registry asks for.

    Args:
        pair: Its operator and hardware.
        operator_digest: The version of the operator that it is for; None where nobody knows.
        registry: The registry in force.
        is_pending: Whether a search for the pair is queued or runs.
    """
    operator, hardware = pair
    if operator not in registry.operators:
        return f"the registry has no operator {operator} any more"
    if hardware not in registry.config.hardware:
        return f"the registry no longer asks for kernels on {hardware}"
    if is_outdated(pair, operator_digest, registry) and not is_pending:
        return f"{operator} has changed since, and no faster kernel was proven for it as it is now"
    return None


def is_outdated(pair: Pair, operator_digest: str | None, registry: Registry) -> bool:
    """Return whether a pull request is for another version of the operator than the registry's."""
    operator = registry.operators.get(pair[0])
    return operator_digest is not None and (operator is None or operator.digest != operator_digest)


def find_better(ours: Evidence | None, theirs: Evidence | None) -> str | None:
    """Return why the kernel at the base makes a pull request's needless; None where it does not."""
    if ours is None or theirs is None:
        return None
    same = (ours.operator_digest, ours.environment) == (theirs.operator_digest, theirs.environment)
    if not same or ours.candidate == theirs.candidate:
        return None
    ratios = theirs.ratio.estimate, ours.ratio.estimate
    if ratios[0] < ratios[1]:
        return None
    return (
        f"the base branch now holds kernel {theirs.candidate[:12]}, measured at {ratios[0]:.2f}x, "
        f"where this one has {ratios[1]:.2f}x"
    )


def closing_title(shown: PullRequest) -> str:
    """Return the title of a pull request that is closed for such a reason."""
    return shown.title if shown.title.startswith("(obsolete) ") else f"(obsolete) {shown.title}"
