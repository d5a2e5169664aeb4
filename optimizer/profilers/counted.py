"""The process that a counter tool runs: a worker that heeds messages from a file."""

import importlib
import sys
from pathlib import Path

from optimizer.evaluate import protocol as p


def main() -> None:
    """Heed the messages of the file that is named."""
    request = p.CountRequest.from_json(Path(sys.argv[1]).read_text(encoding="utf-8"))
    module, _, name = request.worker.partition(":")
    worker = getattr(importlib.import_module(module), name)()
    for message in request.messages:
        worker(message)


if __name__ == "__main__":
    main()
