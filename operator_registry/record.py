"""The frozen base of every value that is written to a file, and its content hash."""

import hashlib
import json
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, StringConstraints

Identifier = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
"""A name that is safe as a Python name, a file name and a column: lower case, no dash."""

Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
"""A name that is safe as a folder and in a branch, such as ``cpu-x86-64-v3``."""


class Record(BaseModel):
    """A frozen value; unknown keys are refused, so that a typing error is never silence."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        validate_default=True,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the value as JSON, keys in the order of declaration."""
        return self.model_dump_json(indent=indent)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the value that `to_json` wrote.

        Raises:
            pydantic.ValidationError: The text is not such a value.
        """
        return cls.model_validate_json(text)


def digest(*parts: Record | str) -> str:
    """Return the SHA-256 of the parts in hex; equal values give equal digests."""
    hasher = hashlib.sha256()
    for part in parts:
        text = part if isinstance(part, str) else canonical_json(part)
        encoded = text.encode()
        # The length first: ("ab", "c") and ("a", "bc") must differ.
        hasher.update(len(encoded).to_bytes(8, "big"))
        hasher.update(encoded)
    return hasher.hexdigest()


def canonical_json(record: Record) -> str:
    """Return JSON with sorted keys and no spaces, the form that is hashed."""
    return json.dumps(record.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
