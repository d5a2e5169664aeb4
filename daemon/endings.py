"""How goals ended and what became of pull requests, in words. Pure."""

from daemon.pulls.publish import (
    Declined,
    HeldBack,
    LeftAlone,
    Merged,
    Opened,
    Publication,
    Unchanged,
    Updated,
)
from daemon.report import End


def describe_end(end: End) -> str:
    """Return how a goal ended, in words."""
    ratio = f" {end.ratio.estimate:.2f}x" if end.ratio else ""
    why = f" ({end.why})" if end.why else ""
    published = f", {describe_publication(end.publication)}" if end.publication else ""
    return f"{end.verdict.replace('_', ' ')}{ratio}{why}{published}"


def describe_publication(publication: Publication) -> str:
    """Return what became of a pull request, in words."""
    match publication:
        case Opened(number=number):
            told = f"pull request #{number} opened"
        case Updated(number=number):
            told = f"pull request #{number} updated"
        case Unchanged(number=number):
            told = f"pull request #{number} shows it"
        case Declined(number=number):
            told = f"pull request #{number} was declined"
        case Merged():
            told = "merged already"
        case LeftAlone(branch=branch):
            told = f"{branch} has somebody else's commits and is left alone"
        case HeldBack(why=why):
            told = f"held back: {why}"
    return told
