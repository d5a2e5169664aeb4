"""Who is asked to look at a pull request: owners by the spec, by CODEOWNERS, by configuration."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

CODEOWNERS = (".github", "", "docs")
"""Folders in which the file of that name is looked for, the first one that has it counts."""
_MOST = 15
"""More than so many people are not asked by a code host."""
_NAME = re.compile(r"^@?([A-Za-z0-9][A-Za-z0-9-]{0,38}(?:/[a-z0-9][a-z0-9_.-]{0,99})?)$", re.ASCII)
_WILD = re.compile(r"/\*\*/|\*\*|\*|\?|[^*?/]+|/")
_AS_REGEX: Mapping[str, str] = {"/**/": "/(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def pick_reviewers(names: Iterable[str], *, me: str) -> tuple[str, ...]:
    """Return the people and ``org/team``s among owners, each once, but not the bot itself.

    An owner may also be a mail address or a team's plain name: nobody can be asked by those.
    """
    found = (match[1] for name in names if (match := _NAME.match(name.strip())))
    return tuple(dict.fromkeys(name for name in found if name.lower() != me.lower()))[:_MOST]


def find_owners(text: str, path: str) -> tuple[str, ...]:
    """Return who owns a path, as a CODEOWNERS file says: the last line that matches counts."""
    owners: tuple[str, ...] = ()
    for line in text.splitlines():
        pattern, *names = line.split("#", 1)[0].split() or [""]
        if pattern and _matcher(pattern).match(path):
            owners = tuple(names)
    return owners


@lru_cache(maxsize=256)
def _matcher(pattern: str) -> re.Pattern[str]:
    """Return what a pattern matches; a folder's holds for all below it."""
    anchored = "/" in pattern.rstrip("/")
    parts = (_AS_REGEX.get(part) or re.escape(part) for part in _WILD.findall(pattern.lstrip("/")))
    start = "" if anchored else "(?:.*/)?"
    body = "".join(parts)
    # `docs/*` is what lies in that folder itself; any other pattern also is all below a folder.
    below = "" if pattern.endswith("/*") else ".*" if pattern.endswith("/") else "(?:/.*)?"
    return re.compile(rf"^{start}{body}{below}$")
