import json
from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.web.webhooks import (
    MOST_BYTES,
    Addressee,
    Envelope,
    Ignored,
    Refused,
    find_delivery,
    is_signed,
    open_envelope,
    sign,
)
from optimizer.store import Delivery

OLD, NEW = b"the secret of last year", b"the secret of this year"
ME = Addressee(secrets=(NEW, OLD), repository="Acme/kernels", installation=7)


def body(**changes: object) -> bytes:
    payload = {
        "action": "created",
        "repository": {"full_name": "acme/kernels"},
        "installation": {"id": 7},
    }
    return json.dumps(payload | changes).encode()


def found(content: bytes, *, event: str = "issue_comment", secret: bytes = NEW) -> object:
    envelope = Envelope(event=event, delivery_id="d-1", signature=sign(content, secret))
    return find_delivery(envelope, content, ME, now=5.0)


def headers(**changes: str | None) -> list[tuple[bytes, bytes]]:
    usual: dict[str, str | None] = {
        "content-type": "application/json",
        "x-github-event": "issue_comment",
        "x-github-delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
        "x-hub-signature-256": "sha256=" + "0" * 64,
    }
    given = usual | {name.replace("_", "-"): value for name, value in changes.items()}
    return [(n.encode(), v.encode("utf-8")) for n, v in given.items() if v is not None]


def test_a_signed_delivery_is_kept_byte_for_byte() -> None:
    content = body(comment={"body": "/status ünï \ud83d\ude80"})

    assert found(content) == Delivery(
        id="d-1", event="issue_comment", body=content.decode(), received_at=5.0
    )


@pytest.mark.parametrize("secret", [OLD, NEW])
def test_both_secrets_are_taken_while_they_are_changed(secret: bytes) -> None:
    assert isinstance(found(body(), secret=secret), Delivery)


def test_the_signature_is_the_one_of_the_code_host_s_documentation() -> None:
    """The example of GitHub's page on validating webhook deliveries."""
    signature = b"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"

    assert sign(b"Hello, World!", b"It's a Secret to Everybody") == signature


@given(st.binary(), st.binary(min_size=1), st.binary(), st.binary(min_size=1))
def test_a_signature_holds_for_its_own_body_and_secret_alone(
    one: bytes, secret: bytes, other: bytes, guess: bytes
) -> None:
    signature = sign(one, secret)

    assert is_signed(one, signature, (secret,))
    # A key that is filled up with zeros is the same key to HMAC.
    if one != other or secret.rstrip(b"\0") != guess.rstrip(b"\0"):
        assert not is_signed(other, signature, (guess,))


@given(st.binary(max_size=100))
def test_no_signature_of_any_bytes_raises(signature: bytes) -> None:
    assert not is_signed(b"{}", signature, (NEW, OLD))


@given(st.binary(max_size=300))
def test_no_signed_body_raises(content: bytes) -> None:
    assert isinstance(found(content), Refused | Ignored | Delivery)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(
            st.sampled_from(("repository", "installation", "action", "full_name", "id")), inner
        ),
    ),
    st.sampled_from(("push", "issue_comment", "check_run", "star")),
)  # fmt: skip
def test_a_payload_of_any_form_is_no_delivery_of_ours(payload: object, event: str) -> None:
    assert not isinstance(found(json.dumps(payload).encode(), event=event), Delivery)


@pytest.mark.parametrize(
    "changes",
    [
        {"repository": {"full_name": "acme/other"}},
        {"repository": {"full_name": "evil/kernels"}},
        {"repository": {"full_name": "acme/\u212aernels"}},  # the sign for Kelvin is no k
        {"repository": {"full_name": ["acme/kernels"]}},
        {"repository": "acme/kernels"},
        {"installation": {"id": 8}},
        {"installation": None},
        {"action": "edited"},
        {"action": ["created"]},
        {"action": None},
    ],
    ids=str,
)
def test_what_is_signed_and_not_for_us_is_ignored(changes: dict[str, object]) -> None:
    assert isinstance(found(body(**changes)), Ignored)


def test_without_an_app_any_installation_will_do() -> None:
    content = body(installation=None)
    envelope = Envelope("issue_comment", "d-1", sign(content, NEW))
    me = Addressee(secrets=(NEW,), repository="acme/kernels")

    assert isinstance(find_delivery(envelope, content, me, now=0.0), Delivery)


def test_an_event_without_actions_needs_none() -> None:
    assert isinstance(found(body(action=None), event="push"), Delivery)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"a": ' + b"9" * 5000 + b"}"]
)
def test_a_signed_body_that_is_no_json_is_a_bad_request(content: bytes) -> None:
    assert found(content) == Refused(HTTPStatus.BAD_REQUEST, "its body is no JSON")


def test_secrets_do_not_show_in_what_is_printed() -> None:
    assert "secret of" not in repr(ME)


def test_headers_say_what_a_request_is() -> None:
    envelope = open_envelope(headers())

    assert envelope == Envelope(
        event="issue_comment",
        delivery_id="72d3162e-cc78-11e3-81ab-4c9367dc0958",
        signature=b"sha256=" + b"0" * 64,
    )


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"content_type": None}, HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
        ({"content_type": "application/x-www-form-urlencoded"}, HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
        ({"content_type": "application/json; charset=utf-16"}, HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
        ({"content_type": "application/jsonp"}, HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
        ({"content_encoding": "gzip"}, HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
        ({"content_length": str(MOST_BYTES + 1)}, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
        ({"content_length": "9" * 19}, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
        ({"x_github_event": None}, HTTPStatus.BAD_REQUEST),
        ({"x_github_event": "Push"}, HTTPStatus.BAD_REQUEST),
        ({"x_github_event": "a" * 65}, HTTPStatus.BAD_REQUEST),
        ({"x_github_delivery": None}, HTTPStatus.BAD_REQUEST),
        ({"x_github_delivery": "a" * 65}, HTTPStatus.BAD_REQUEST),
        ({"x_github_delivery": "x'; DROP TABLE goals"}, HTTPStatus.BAD_REQUEST),
        ({"x_hub_signature_256": None}, HTTPStatus.FORBIDDEN),
        ({"x_hub_signature_256": ""}, HTTPStatus.FORBIDDEN),
        ({"x_hub_signature_256": "sha1=" + "0" * 40}, HTTPStatus.FORBIDDEN),
        ({"x_hub_signature_256": "sha256=" + "é" * 32}, HTTPStatus.FORBIDDEN),
        ({"x_hub_signature_256": "sha256=" + "A" * 64}, HTTPStatus.FORBIDDEN),
        ({"x_hub_signature_256": "sha256=" + "0" * 65}, HTTPStatus.FORBIDDEN),
    ],
    ids=str,
)
def test_headers_that_no_code_host_sends_are_refused(
    changes: dict[str, str | None], status: HTTPStatus
) -> None:
    envelope = open_envelope(headers(**changes))

    assert isinstance(envelope, Refused)
    assert envelope.status == status


def test_a_header_that_comes_twice_is_refused() -> None:
    twice = [*headers(), (b"x-hub-signature-256", b"sha256=" + b"1" * 64)]

    assert isinstance(open_envelope(twice), Refused)


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Application/JSON"])
def test_a_content_type_may_name_its_letters(kind: str) -> None:
    assert isinstance(open_envelope(headers(content_type=kind)), Envelope)
