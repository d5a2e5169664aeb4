"""The log: JSON lines for machines, colours for people. The one module that configures it."""

import logging
import re
from typing import Any, TextIO

import structlog
from structlog.typing import EventDict, Processor

from daemon.settings import LogFormat

_SECRET = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|gh[a-z]_\w{8,}|github_pat_\w{8,}"
    r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"  # a JSON web token
    r"|eC1hY2Nlc3MtdG9rZW46[\w+/=]*"  # "x-access-token:" as git sends it
    r"|(?<=x-access-token:)[^@\s\"']+|(?<=[Bb]earer )[\w+/=.~-]{8,}",
    re.DOTALL,
)


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
    # It warns at each tick at which the last turn still runs: for every minute of a search.
    logging.getLogger("apscheduler").setLevel(logging.ERROR)


def find_log(name: str) -> Any:  # noqa: ANN401 - structlog's loggers are a lazy proxy
    """Return the logger of a module."""
    return structlog.get_logger(name)


def without_secrets(text: str) -> str:
    """Return the text with every token and private key in it removed."""
    return _SECRET.sub("[removed]", text)


def _mask(logger: object, name: str, line: EventDict | str) -> str:
    # After the line is written, so that no place in it is forgotten: tracebacks, arguments, keys.
    return without_secrets(str(line))


def _last_processors(format_: LogFormat, stream: TextIO) -> tuple[Processor, ...]:
    drop = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    coloured = stream.isatty()
    if format_ == "text" or (format_ == "auto" and coloured):
        return (drop, structlog.dev.ConsoleRenderer(colors=coloured), _mask)
    return (
        drop,
        structlog.processors.dict_tracebacks,
        structlog.processors.JSONRenderer(sort_keys=False),
        _mask,
    )
