"""Whether GitHub lets us do our work, and what to change where it does not.

Nothing is changed by looking, but that tokens are made.
"""

from collections.abc import Callable, Iterator
from typing import Literal

from daemon.actions.workflow import FOLDER, find_workflow_fault
from daemon.forge import ForgeError, NotThereError
from daemon.github.access import PERMISSIONS, App
from daemon.github.answers import Request
from daemon.github.deliveries import GitHubDeliveries
from daemon.github.forge import GitHubForge
from daemon.github.records import Json, reading
from daemon.github.setup import is_readable_by_others
from daemon.origin import WorkspaceError
from daemon.pulls.interest import STALE_LABEL
from daemon.pulls.pull_request import EDITED_LABEL, LABELS, branch_name
from daemon.settings import Settings
from daemon.web.webhooks import EVENTS
from daemon.workspace import Workspace
from operator_registry.record import Record

State = Literal["good", "note", "bad"]
_UNASKED = frozenset({"check_run", "check_suite"})
"""An App that may write checks is told of these without asking for them."""
_LEVELS = ("none", "read", "write", "admin")
_DAY_S = 86400.0
_STOPPERS = {
    "creation": "we can't make our branches",
    "update": "we can't change our branches",
    "deletion": "we can't delete our branches after a merge",
    "non_fast_forward": "we can't replace our commit by a better one",
    "required_signatures": "our commits have no signature that GitHub knows",
}


class Finding(Record):
    """One thing that was looked at."""

    subject: str
    state: State
    """A note is something to know; what is bad keeps us from our work."""
    told: str
    fix: str = ""
    """What to do about it."""


class Doctor:
    """Looks at an installation from where its daemon stands."""

    def __init__(self, settings: Settings, forge: GitHubForge, workspace: Workspace) -> None:
        """Take the daemon's own parts."""
        self.settings = settings
        self.forge = forge
        self.client = forge.client
        self.workspace = workspace

    def find(self) -> tuple[Finding, ...]:
        """Return what was found, in the order in which to mend it."""
        access = self.client.access
        looks: list[tuple[str, Callable[[], Iterator[Finding]]]] = []
        if isinstance(access, App):
            looks = [
                ("app", lambda: self._look_at_app(access)),
                ("installation", lambda: self._look_at_installation(access)),
                ("webhook", self._look_at_webhook),
            ]
        looks += [
            ("account", self._look_at_account),
            ("repository", self._look_at_repository),
            ("rules", self._look_at_rules),
            ("labels", self._look_at_labels),
            ("git", self._look_at_git),
            ("runners", self._look_at_runners),
        ]
        return tuple(finding for name, look in looks for finding in _looked(name, look))

    def _look_at_app(self, access: App) -> Iterator[Finding]:
        if access.private_key.exists() and is_readable_by_others(access.private_key):
            told = f"{access.private_key} can be read by others on this machine"
            yield Finding(subject="app", state="bad", told=told, fix="chmod 600 it")
        app = self._app("/app")
        yield Finding(subject="app", state="good", told=f"we are the App {app['slug']}")

    def _look_at_installation(self, access: App) -> Iterator[Finding]:
        name = "installation"
        try:
            there = self._app(f"/repos/{self.client.repository}/installation")
        except NotThereError:
            told = f"the App is not installed in {self.client.repository}"
            url = self._app("/app")["html_url"]
            yield Finding(subject=name, state="bad", told=told, fix=f"install it: {url}")
            return
        if there.get("suspended_at"):
            told, fix = "the installation is suspended", f"lift that: {there['html_url']}"
            yield Finding(subject=name, state="bad", told=told, fix=fix)
        elif access.installation_id not in {None, there["id"]}:
            told = f"it is {there['id']} here, not {access.installation_id} as it is set"
            fix = f"set KERNELEVOLVE_GITHUB_INSTALLATION_ID={there['id']}"
            yield Finding(subject=name, state="bad", told=told, fix=fix)
        else:
            told = f"it is installed as {there['id']}"
            yield Finding(subject=name, state="good", told=told)
        yield from _judge_permissions(there["permissions"])
        yield from self._judge_events(set(there["events"]))

    def _judge_events(self, events: set[str]) -> Iterator[Finding]:
        missing = sorted(set(EVENTS) - _UNASKED - events)
        if self.settings.takes_webhooks and missing:
            told = f"it is not told of: {', '.join(missing)}; what happens is found later"
            fix = "subscribe to these events in the App's settings"
            yield Finding(subject="events", state="note", told=told, fix=fix)
        elif self.settings.takes_webhooks:
            yield Finding(subject="events", state="good", told="it is told of all it wants to know")

    def _look_at_webhook(self) -> Iterator[Finding]:
        name = "webhook"
        if not self.settings.takes_webhooks:
            told = "none is taken: what happens is found by looking, within seconds"
            yield Finding(subject=name, state="note", told=told)
            return
        hook = self._app("/app/hook/config")
        wrong = [
            (not hook.get("url"), "it has no address", "set it to https://HOST/webhook"),
            (not hook.get("secret"), "it has no secret", "set the one that is in our settings"),
            (hook.get("content_type") != "json", "it sends no JSON", "set its content type"),
            (str(hook.get("insecure_ssl")) != "0", "it checks no certificate", "make it do so"),
        ]
        faults = [(told, fix) for is_wrong, told, fix in wrong if is_wrong]
        for told, fix in faults:
            yield Finding(subject=name, state="bad", told=told, fix=f"{fix} (App settings)")
        since = self.client.clock() - _DAY_S
        recent = GitHubDeliveries(self.client).attempts(since=since)
        if recent and not any(attempt.succeeded for attempt in recent):
            told = f"none of {len(recent)} deliveries of the last day arrived"
            fix = "see whether GitHub can reach the address, and whether the secrets are the same"
            yield Finding(subject=name, state="bad", told=told, fix=fix)
        elif not faults:
            yield Finding(subject=name, state="good", told=f"it goes to {hook['url']}")

    def _look_at_account(self) -> Iterator[Finding]:
        me = self.forge.me
        yield Finding(subject="account", state="good", told=f"we write as {me.login}")
        if not isinstance(self.client.access, App):
            rights = self.forge.permission(me.login)
            if rights not in {"write", "maintain", "admin"}:
                told = f"{me.login} may only {rights} here"
                fix = "give it the role Write"
                yield Finding(subject="account", state="bad", told=told, fix=fix)
            told = "a token stands for a person, and shows no checks but commit statuses"
            yield Finding(subject="account", state="note", told=told, fix="use a GitHub App")

    def _look_at_repository(self) -> Iterator[Finding]:
        name = "repository"
        json = self.client.ask(Request("GET", f"/repos/{self.client.repository}")).json
        if json["full_name"].lower() != self.client.repository.lower():
            told = f"it is {json['full_name']} now"
            fix = f"set KERNELEVOLVE_GITHUB_REPOSITORY={json['full_name']}"
            yield Finding(subject=name, state="bad", told=told, fix=fix)
        if json.get("archived") or json.get("disabled"):
            told = "it is archived: nothing can be written"
            yield Finding(subject=name, state="bad", told=told, fix="unarchive it")
        if not json.get("has_issues", True):
            told = "it has no issues, so that there is no dashboard"
            yield Finding(subject=name, state="note", told=told, fix="switch issues on")
        told = f"{json['full_name']}; its default branch is {json['default_branch']}"
        yield Finding(subject=name, state="good", told=told)

    def _look_at_rules(self) -> Iterator[Finding]:
        """Look at what is forbidden on our branches, and at what guards theirs."""
        ours = self._rules(branch_name("operator", "hardware"))
        stopped = [(kind, what) for kind, what in _STOPPERS.items() if kind in ours]
        for kind, what in stopped:
            told = f"the rule {kind} holds on kernelevolve/**: {what}"
            fix = "exclude kernelevolve/** from that ruleset, or let the bot bypass it"
            yield Finding(subject="rules", state="bad", told=told, fix=fix)
        if not stopped:
            yield Finding(subject="rules", state="good", told="kernelevolve/** is free for us")
        repository = self.client.ask(Request("GET", f"/repos/{self.client.repository}")).json
        base = self.settings.base or repository["default_branch"]
        path = f"/repos/{self.client.repository}/branches/{base}"
        protected = self.client.ask(Request("GET", path)).json.get("protected")
        if protected or "pull_request" in self._rules(base):
            yield Finding(subject="rules", state="good", told=f"{base} is protected")
        else:
            told = f"{base} is not protected: whoever may write may merge without a review"
            fix = f"protect {base}: ask for a pull request and a review"
            yield Finding(subject="rules", state="note", told=told, fix=fix)

    def _look_at_labels(self) -> Iterator[Finding]:
        there = self.client.pages(f"/repos/{self.client.repository}/labels")
        known = {str(json["name"]).lower() for json in there}
        missing = [label for label in (*LABELS, EDITED_LABEL, STALE_LABEL) if label not in known]
        if missing:
            told = f"not there yet: {', '.join(missing)}; they are made, in grey, when needed"
            fix = "; ".join(f"gh label create {label}" for label in missing)
            yield Finding(subject="labels", state="note", told=told, fix=fix)
        else:
            yield Finding(subject="labels", state="good", told="all are there")

    def _look_at_git(self) -> Iterator[Finding]:
        heads = self.workspace.find_heads()
        told = f"{self.workspace.origin} has {len(heads.branches)} branches"
        yield Finding(subject="git", state="good", told=told)

    def _look_at_runners(self) -> Iterator[Finding]:
        name, workflow = "runners", self.settings.actions_workflow
        if not workflow:
            told = "none are asked: work on hardware that is not in this machine stays queued"
            yield Finding(subject=name, state="note", told=told)
            return
        ref = self.settings.base or self.workspace.find_heads().default
        text = self.forge.file(f"{FOLDER}/{workflow}", ref=ref)
        if fault := find_workflow_fault(workflow, text):
            fix = f"copy this project's {FOLDER}/search.yml to {ref}"
            yield Finding(subject=name, state="bad", told=fault, fix=fix)
        else:
            yield Finding(subject=name, state="good", told=f"{workflow} can be started on {ref}")

    def _rules(self, branch: str) -> set[str]:
        path = f"/repos/{self.client.repository}/rules/branches/{branch}"
        return {rule["type"] for rule in self.client.ask(Request("GET", path)).json}

    def _app(self, path: str) -> Json:
        return self.client.ask(Request("GET", path, purpose="app")).json


def _judge_permissions(granted: dict[str, str]) -> Iterator[Finding]:
    name = "permissions"
    wanted = {**PERMISSIONS["api"], **PERMISSIONS["git"]}
    missing = [f"{what}: {level}" for what, level in wanted.items() if _less(granted, what, level)]
    if missing:
        fix = "grant these in the App's settings, then accept them in the installation"
        told = f"missing: {', '.join(missing)}"
        yield Finding(subject=name, state="bad", told=told, fix=fix)
    else:
        yield Finding(subject=name, state="good", told="all that is needed is granted")
    if any(_less(granted, what, level) for what, level in PERMISSIONS["actions"].items()):
        told = "actions: write is not granted: searches can't run on a company's runners by GitHub"
        yield Finding(subject=name, state="note", told=told)
    spare = sorted(set(granted) - set(wanted) - set(PERMISSIONS["actions"]))
    if spare:
        told = f"granted and never used: {', '.join(spare)}"
        yield Finding(subject=name, state="note", told=told, fix="take these from the App")


def _less(granted: dict[str, str], what: str, level: str) -> bool:
    return _LEVELS.index(granted.get(what, "none")) < _LEVELS.index(level)


def _looked(name: str, look: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """Return what a look found, and why it found no more."""
    found: list[Finding] = []
    try:
        with reading(name):
            for finding in look():
                found.append(finding)  # noqa: PERF402 - what was found before an error stays
    except (ForgeError, WorkspaceError) as error:
        found.append(Finding(subject=name, state="bad", told=str(error)))
    return found
