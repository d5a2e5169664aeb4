"""Whether a workflow takes what the daemon dispatches, and names its runs to be found again."""

import re
from typing import Any

from operator_registry.document import DocumentError, parse_document

FOLDER = ".github/workflows"
INPUTS = ("tag", "labels", "request")
_TAG = re.compile(r"\$\{\{\s*inputs\.tag\s*\}\}")


def find_workflow_fault(name: str, text: str | None) -> str | None:
    """Return what keeps a workflow from being dispatched; None where nothing does.

    Args:
        name: Its file's.
        text: The file; None where there is none.
    """
    path = f"{FOLDER}/{name}"
    if text is None:
        return f"there is no {path}"
    try:
        document, _ = parse_document(path, text)
    except DocumentError as error:
        return f"it can't be read: {error}"
    workflow = document.plain()
    inputs = _inputs(workflow.get("on"))
    if inputs is None:
        return f"{path} is not started by workflow_dispatch"
    if missing := [name for name in INPUTS if name not in inputs]:
        return f"{path} takes no input {', '.join(missing)}"
    if not _TAG.search(str(workflow.get("run-name", ""))):
        return f"{path} has no run-name with ${{{{ inputs.tag }}}}: its runs could not be found"
    return None


def _inputs(triggers: Any) -> set[str] | None:  # noqa: ANN401 - whatever the file holds
    """Return the inputs of a workflow that can be dispatched."""
    if not isinstance(triggers, dict) or "workflow_dispatch" not in triggers:
        return None
    dispatch = triggers["workflow_dispatch"]
    given = dispatch.get("inputs") if isinstance(dispatch, dict) else None
    return set(given) if isinstance(given, dict) else set()
