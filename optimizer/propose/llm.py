"""The door to language models: any endpoint that talks as OpenAI's does, through its own client."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx2
import openai

from optimizer.errors import ModelKeyError
from optimizer.evaluate.sandbox import shows
from optimizer.propose.model import Answered, ModelSettings, Question, Unanswered
from optimizer.propose.stream import Assembly, conclude

_HEADERS: Final = {"Accept-Encoding": "identity"}
_CONNECT_S: Final = 10.0
_LARGEST_KEY: Final = 4096
_GROUP_AND_OTHERS: Final = 0o077
_BYTES_A_TOKEN: Final = 1024
"""Of a stream: an event around each token."""
_LEAST_BYTES: Final = 1 << 16
_LONGEST_DETAIL: Final = 300
_HIDDEN: Final = "[key]"
_OPTIONAL: Final = ("response_format", "stream_options", "seed", "temperature")
"""What a question can do without, in the order in which it is given up where none is named."""
_SECONDS: Final = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")
_BROKEN: Final = frozenset({408, 409, 425})
"""States below 500 that pass."""
_BEHIND: Final = frozenset({502, 504, 524})
"""A gateway's words: behind it the model may have been at work."""
_UNSENT: Final = (httpx2.ConnectError, httpx2.UnsupportedProtocol, httpx2.PoolTimeout)


class Endpoint:
    """A model behind HTTP. Any thread may ask."""

    def __init__(self, settings: ModelSettings, key: str = "") -> None:
        """Make the client; nobody is asked yet."""
        self._key = key
        self._dropped: frozenset[str] = frozenset()
        """What this endpoint was found to refuse."""
        self._client = openai.OpenAI(
            base_url=settings.url,
            api_key=key or "none",
            max_retries=0,
            default_headers=_HEADERS,
            http_client=openai.DefaultHttpxClient(
                follow_redirects=False,  # a prompt goes where the settings say
                event_hooks={"response": [_refuse_packed]},
                limits=httpx2.Limits(max_keepalive_connections=0),  # nothing is left open
            ),
        )
        # What the environment says of a person's account is not for whatever endpoint this is.
        self._client.organization = self._client.project = None
        self._client._custom_headers = _HEADERS  # noqa: SLF001 - its own variable adds to them

    def ask(self, question: Question, *, within_s: float) -> Answered | Unanswered:
        """See `Model.ask`. What an endpoint refuses of a question's form is left out."""
        if self._key and any(self._key in message.text for message in question.messages):
            return Unanswered(why="refused", detail="the prompt holds the endpoint's key")
        until_s = time.monotonic() + within_s
        dropped = self._dropped
        while True:
            body = _body(question, dropped)
            try:
                said = self._once(body, until_s)
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                refused = _find_refused(body, error)
                if refused is None or time.monotonic() > until_s:
                    return self._hide(Unanswered(why="refused", detail=_detail(error)))
                dropped |= {refused}
                continue
            self._dropped = dropped
            return self._hide(said)

    def _once(self, body: dict[str, Any], until_s: float) -> Answered | Unanswered:
        """Return what was said.

        Raises:
            openai.BadRequestError: The endpoint does not take a question of this form.
            openai.UnprocessableEntityError: Likewise.
        """
        left_s = max(0.1, until_s - time.monotonic())
        timeout = httpx2.Timeout(left_s, connect=min(_CONNECT_S, left_s))
        most_tokens: int = body.get("max_tokens") or body["max_completion_tokens"]
        bound = _Bound(_LEAST_BYTES + _BYTES_A_TOKEN * most_tokens, until_s)
        create: Any = self._client.chat.completions.with_streaming_response.create
        try:
            # What is sent depends on what this endpoint takes, so no type says it.
            with create(**body, timeout=timeout) as response:
                return _read(response, bound)
        except (openai.BadRequestError, openai.UnprocessableEntityError):
            raise
        except (openai.APITimeoutError, httpx2.TimeoutException):
            return Unanswered(why="silent", detail="no answer in time", charged=True)
        except openai.APIStatusError as error:
            return _of_status(error)
        except openai.APIConnectionError as error:
            return _of_connection(error.__cause__ or error)
        except httpx2.HTTPError as error:
            return Unanswered(why="away", detail=_detail(error), charged=True)
        except openai.OpenAIError as error:
            return Unanswered(why="garbled", detail=_detail(error), charged=True)

    def _hide(self, said: Answered | Unanswered) -> Answered | Unanswered:
        """Return what was said without the key, which some endpoints repeat."""
        if isinstance(said, Answered):
            return said.model_copy(update={"text": self._without_key(said.text)})
        # Cut afterwards: what is left of a key that was cut in two would not be found.
        detail = self._without_key(said.detail)[:_LONGEST_DETAIL]
        return said.model_copy(update={"detail": detail})

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, _HIDDEN) if self._key else text


def _body(question: Question, dropped: frozenset[str]) -> dict[str, Any]:
    """Return a question as it is sent, without what an endpoint refuses.

    Where that is ``max_tokens``, its newer name is used.
    """
    body: dict[str, Any] = {
        "model": question.model,
        "messages": [{"role": m.role, "content": m.text} for m in question.messages],
        "max_tokens": question.most_tokens,
        "temperature": question.temperature,
        "seed": question.seed,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if question.form:
        schema = {"name": "reply", "strict": True, "schema": json.loads(question.form)}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if "max_tokens" in dropped:
        body["max_completion_tokens"] = body["max_tokens"]
    return {name: value for name, value in body.items() if name not in dropped}


def _find_refused(body: dict[str, Any], error: openai.APIStatusError) -> str | None:
    """Return which part of a body to try without; None where nothing is left to try."""
    named = error.param.split(".")[0] if isinstance(error.param, str) else ""
    if named:
        return named if named in body and named in (*_OPTIONAL, "max_tokens") else None
    return next((name for name in _OPTIONAL if name in body), None)


class _Bound:
    """How much of a body is read, and until when."""

    def __init__(self, most_bytes: int, until_s: float) -> None:
        self._left = most_bytes
        self._until_s = until_s

    def take(self, chunk: bytes) -> bool:
        """Return whether more may be read after this."""
        self._left -= len(chunk)
        return self._left > 0 and time.monotonic() < self._until_s


def read_key(path: Path | None, *, state_folder: Path) -> str:
    """Return the endpoint's key; empty where none is needed.

    Only this process holds it: foreign code starts in processes of its own, to which neither this
    file nor this process's memory is shown.

    Args:
        path: The file that holds it.
        state_folder: The judge's own; parts of it are shown to foreign code.

    Raises:
        ModelKeyError: The file can't be read, holds no key, or others could read it.
    """
    if path is None:
        return ""
    if shows(path) or state_folder.resolve() in path.resolve().parents:
        raise ModelKeyError(path, "foreign code may read what lies there; put it into your home")
    try:
        if path.stat().st_mode & _GROUP_AND_OTHERS:
            raise ModelKeyError(path, f"others may read it: chmod 600 {path}")
        with path.open("rb") as file:
            key = file.read(_LARGEST_KEY + 1).decode("ascii").strip()
    except OSError as error:
        raise ModelKeyError(path, error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise ModelKeyError(path, "it holds what is no text") from error
    if not key or len(key) > _LARGEST_KEY or not key.isprintable() or " " in key:
        raise ModelKeyError(path, "it should hold the key alone, in one line")
    return key


def _read(response: Any, bound: _Bound) -> Answered | Unanswered:  # noqa: ANN401 - of openai
    assembly = Assembly(whole="json" in response.headers.get("content-type", ""))
    cut = False
    for chunk in _chunks(response):
        assembly.feed(chunk)
        if not bound.take(chunk):
            cut = True
            break
    assembly.end()
    return conclude(assembly, cut=cut)


def _chunks(response: Any) -> Iterator[bytes]:  # noqa: ANN401 - of openai
    """Yield a body; where the server breaks off in the midst of it, what came before counts."""
    some = False
    try:
        for chunk in response.iter_bytes():
            some = True
            yield chunk
    except httpx2.HTTPError:
        if not some:
            raise


def _refuse_packed(response: httpx2.Response) -> None:
    """Refuse a body that could unfold to any size, and bound one that tells of an error."""
    if response.headers.get("content-encoding", "identity") != "identity":
        msg = "the body is packed, which was not asked for"
        raise httpx2.DecodingError(msg, request=response.request)
    if not response.is_success:
        response.stream = _Short(response.stream)


class _Short(httpx2.SyncByteStream):
    """The beginning of a body."""

    def __init__(self, stream: Any) -> None:  # noqa: ANN401 - sync or not, by httpx's own types
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        left = _LEAST_BYTES
        for chunk in self._stream:
            yield chunk[:left]
            left -= len(chunk)
            if left <= 0:
                return

    def close(self) -> None:
        self._stream.close()


def _of_connection(error: BaseException) -> Unanswered:
    """Return why there was no answer; what may have reached the model is charged for."""
    if isinstance(error, httpx2.DecodingError):
        return Unanswered(why="refused", detail=_detail(error), charged=True)
    return Unanswered(why="away", detail=_detail(error), charged=not isinstance(error, _UNSENT))


def _of_status(error: openai.APIStatusError) -> Unanswered:
    busy = isinstance(error, openai.RateLimitError)
    passes = error.status_code >= httpx2.codes.INTERNAL_SERVER_ERROR or (
        error.status_code in _BROKEN
    )
    return Unanswered(
        why="busy" if busy else "broken" if passes else "refused",
        detail=_detail(error),
        charged=error.status_code in _BEHIND,
        retry_after_s=_retry_after_s(error.response.headers.get("retry-after", "")),
    )


def _retry_after_s(text: str) -> float | None:
    """Return the seconds that a header asks for; dates, which few servers send, are passed over."""
    return float(text) if _SECONDS.fullmatch(text.strip()) else None


def _detail(error: BaseException) -> str:
    text = str(error).encode(errors="replace").decode()
    return f"{type(error).__name__}: {text}"
