"""The log: JSON lines for machines, colours for people. The one module that configures it."""

import logging
from typing import Any, TextIO

import structlog
from structlog.typing import Processor

from daemon.settings import LogFormat


def configure_logs(format_: LogFormat, stream: TextIO) -> None:
    """Send everything that is logged to a stream, libraries' warnings included."""
    shared: tuple[Processor, ...] = (
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    )
    last = _last_processors(format_, stream)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    output = logging.StreamHandler(stream)
    output.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=last)
    )
    root = logging.getLogger()
    root.handlers[:] = [output]
    root.setLevel(logging.WARNING)
    logging.getLogger("daemon").setLevel(logging.INFO)


def find_log(name: str) -> Any:  # noqa: ANN401 - structlog's loggers are a lazy proxy
    """Return the logger of a module."""
    return structlog.get_logger(name)


def _last_processors(format_: LogFormat, stream: TextIO) -> tuple[Processor, ...]:
    drop = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    coloured = stream.isatty()
    if format_ == "text" or (format_ == "auto" and coloured):
        return (drop, structlog.dev.ConsoleRenderer(colors=coloured))
    return (
        drop,
        structlog.processors.dict_tracebacks,
        structlog.processors.JSONRenderer(sort_keys=False),
    )
