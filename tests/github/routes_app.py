"""The App: its installation and the deliveries of its webhook."""

from dataclasses import replace

from tests.github.asking import Ask, Reply, problem, route
from tests.github.shapes import repository_json, user_json
from tests.github.state import Delivery, Json, iso
from tests.github.world import EVENTS, RefusedError, World

_APP = ("app",)


@route("GET", "/app", by=_APP)
def show_app(ask: Ask) -> Reply:
    return Reply(200, ask.world.app_json() | {"installations_count": 1})


def installation_json(world: World) -> Json:
    url = f"{world.api}/app/installations/{world.installation_id}"
    return {
        "id": world.installation_id,
        "account": user_json(world, world.owner),
        "access_tokens_url": f"{url}/access_tokens",
        "repositories_url": f"{world.api}/installation/repositories",
        "html_url": f"{world.web}/settings/installations/{world.installation_id}",
        "app_id": world.app_id,
        "app_slug": world.bot.login.removesuffix("[bot]"),
        "target_id": world.owner.id,
        "target_type": "User",
        "permissions": dict(world.permissions),
        "events": list(EVENTS),
        "single_file_name": None,
        "repository_selection": "selected",
        "created_at": iso(world.born),
        "updated_at": iso(world.born),
        "suspended_at": None,
        "suspended_by": None,
    }


@route("GET", "/app/installations", by=_APP)
def list_installations(ask: Ask) -> Reply:
    return ask.page([installation_json(ask.world)])


@route("GET", "/app/installations/{installation_id}", by=_APP)
def show_installation(ask: Ask) -> Reply:
    check_installation(ask)
    return Reply(200, installation_json(ask.world))


def check_installation(ask: Ask) -> None:
    if ask.number("installation_id") != ask.world.installation_id:
        raise RefusedError(404, "Not Found")


@route("GET", "/repos/{owner}/{repo}/installation", by=_APP)
def show_installation_here(ask: Ask) -> Reply:
    return Reply(200, installation_json(ask.world))


@route("GET", "/installation/repositories", by=("installation",))
def list_repositories(ask: Ask) -> Reply:
    shown, links = ask.cut([repository_json(ask.world)])
    return Reply(200, {"total_count": 1, "repositories": list(shown)}, links)


@route("GET", "/app/hook/config", by=_APP)
def show_hook(ask: Ask) -> Reply:
    body = {
        "content_type": "json",
        "insecure_ssl": "0",
        "secret": "********",
        "url": ask.world.hook_url or "https://bot.invalid/webhook",
    }
    return Reply(200, body)


def _delivery_json(world: World, delivery: Delivery) -> Json:
    good = 200 <= delivery.status_code < 300
    return {
        "id": delivery.id,
        "guid": delivery.guid,
        "delivered_at": iso(delivery.delivered_at),
        "redelivery": delivery.redelivery,
        "duration": 0.1,
        "status": "OK" if good else "failed to connect to host",
        "status_code": delivery.status_code,
        "event": delivery.event,
        "action": delivery.action,
        "installation_id": world.installation_id,
        "repository_id": repository_json(world)["id"],
        "throttled_at": None,
    }


@route("GET", "/app/hook/deliveries", by=_APP)
def list_deliveries(ask: Ask) -> Reply:
    """List the newest first; the next page is asked for by a cursor, not by a number."""
    newest = list(reversed(ask.world.deliveries))
    cursor = ask.query.get("cursor")
    start = next((i for i, d in enumerate(newest) if f"v1_{d.id}" == cursor), 0)
    most = min(int(ask.query.get("per_page", "30")), 100, ask.world.quirks.most_per_page)
    shown = [_delivery_json(ask.world, d) for d in newest[start : start + most]]
    links = {}
    if start + most < len(newest):
        url = f"{ask.world.api}/app/hook/deliveries?per_page={most}"
        links = {"Link": f'<{url}&cursor=v1_{newest[start + most].id}>; rel="next"'}
    return Reply(200, shown, links)


def _find(ask: Ask) -> Delivery:
    for delivery in ask.world.deliveries:
        if delivery.id == ask.number("delivery_id"):
            return delivery
    raise RefusedError(404, "Not Found")


@route("GET", "/app/hook/deliveries/{delivery_id}", by=_APP)
def show_delivery(ask: Ask) -> Reply:
    found = _find(ask)
    body = _delivery_json(ask.world, found) | {
        "url": ask.world.hook_url or "",
        "request": {"headers": found.headers, "payload": {}},
        "response": {"headers": {}, "payload": ""},
    }
    return Reply(200, body)


@route("POST", "/app/hook/deliveries/{delivery_id}/attempts", by=_APP)
def redeliver(ask: Ask) -> Reply:
    """Send it again: under a new id, but the same GUID."""
    found = _find(ask)
    world = ask.world
    if world.clock() - found.delivered_at > 3 * 86400:
        return problem(422, "This delivery is too old")
    again = replace(
        found, id=next(world.new_id), redelivery=True, delivered_at=world.clock(), status_code=0
    )
    world.deliveries.append(again)
    world.deliver(again)
    return Reply(202, {})
