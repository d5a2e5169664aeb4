"""Who may do what at the fake of GitHub."""

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.fakes import FakeClock
from tests.github.asker import Asker, app_token
from tests.github.fake import FakeGitHub
from tests.github.state import Role

OUTPUT = {"title": "t", "summary": "s"}


def ask_for_token(host: FakeGitHub, token: str, permissions: dict[str, str]) -> tuple[int, str]:
    with Asker(host, token) as app:
        path = f"/app/installations/{host.installation_id}/access_tokens"
        answer = app.ask("POST", path, {"permissions": permissions})
        return answer.status_code, answer.json().get("token", "")


def test_a_token_grants_what_was_asked_for_and_no_more(host: FakeGitHub) -> None:
    status, token = ask_for_token(host, app_token(host), {"issues": "write"})

    with Asker(host, token) as asker:
        opened = asker.ask("POST", ":/issues", {"title": "T"})
        pulled = asker.ask("POST", ":/pulls", {"title": "T", "head": "w", "base": "main"})
        read = asker.ask("GET", ":/contents/README.md")
    assert (status, opened.status_code) == (201, 201)
    assert (pulled.status_code, read.status_code) == (403, 403)


def test_an_app_gets_no_more_than_it_has(host: FakeGitHub) -> None:
    host.permissions["checks"] = "read"

    assert ask_for_token(host, app_token(host), {"checks": "write"})[0] == 422
    assert ask_for_token(host, app_token(host), {"administration": "read"})[0] == 422


def test_without_a_wish_a_token_grants_all(host: FakeGitHub) -> None:
    _, token = ask_for_token(host, app_token(host), {})

    with Asker(host, token) as asker:
        assert asker.ask("POST", ":/issues", {"title": "T"}).status_code == 201
        assert asker.ask("GET", ":/contents/README.md").status_code == 200


def test_a_token_ends_after_an_hour(host: FakeGitHub, clock: FakeClock) -> None:
    with Asker(host, host.installation_token()) as asker:
        clock.now_s += 3599
        assert asker.ask("GET", ":").status_code == 200
        clock.now_s += 1
        assert asker.ask("GET", ":").status_code == 401


def test_the_apps_signature_is_checked(host: FakeGitHub) -> None:
    stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )

    assert ask_for_token(host, app_token(host, key=stranger.decode()), {})[0] == 401


@pytest.mark.parametrize(("life_s", "status"), [(600, 201), (601, 401), (0, 401)])
def test_the_apps_own_token_lives_ten_minutes_at_most(
    host: FakeGitHub, life_s: int, status: int
) -> None:
    assert ask_for_token(host, app_token(host, life_s=life_s), {})[0] == status


def test_an_app_sees_no_repository_without_an_installation(host: FakeGitHub) -> None:
    with Asker(host, app_token(host)) as app:
        assert app.ask("GET", ":/pulls").status_code == 401


def test_only_an_app_writes_checks(host: FakeGitHub) -> None:
    host.set_role("ann", "admin")
    check = {"name": "n", "head_sha": host.git.heads()["main"], "output": OUTPUT}

    with Asker(host, host.make_token("ann")) as person:
        assert person.ask("POST", ":/check-runs", check).status_code == 403
    with Asker(host, host.installation_token()) as app:
        assert app.ask("POST", ":/check-runs", check).status_code == 201


@pytest.mark.parametrize(
    ("role", "legacy"),
    [("admin", "admin"), ("maintain", "write"), ("write", "write"), ("triage", "read")],
)
def test_the_older_word_for_a_role_is_coarser(
    host: FakeGitHub, asker: Asker, role: Role, legacy: str
) -> None:
    host.set_role("Ann", role)

    found = asker.get(":/collaborators/ann/permission")

    assert (found["role_name"], found["permission"]) == (role, legacy)


def test_anybody_reads_a_public_repository_and_nobody_a_private_one(
    host: FakeGitHub, asker: Asker
) -> None:
    host.set_role("stranger", "none")
    assert asker.get(":/collaborators/stranger/permission")["role_name"] == "read"

    host.world.private = True

    assert asker.get(":/collaborators/stranger/permission")["permission"] == "none"
    assert asker.ask("GET", ":/collaborators/nobody/permission").status_code == 404


def test_another_repository_is_not_there(host: FakeGitHub, asker: Asker) -> None:
    assert asker.ask("GET", "/repos/octo/other/pulls").status_code == 404
