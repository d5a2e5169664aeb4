"""Attacks by comment, branch name, spec and configuration, through the daemon's real parts.

Those that end at one part stand with its tests: `ATTACKS.md` lists them all.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from daemon.markdown import code
from optimizer.store import StoredCommand
from tests.daemon.origins import HERE
from tests.github.stage import (
    BRANCH,
    CONFIG,
    OPERATOR,
    OWNER,
    START,
    STRANGER,
    WRITER,
    Stage,
    operator_files,
)

HUGE = 10 * 1024 * 1024
_TESTS = Path(__file__).parents[1]


@dataclass(frozen=True)
class Asked:
    """A daemon with one open pull request, and what became of all that was said below it."""

    stage: Stage
    comments: dict[str, int]
    jobs: list[tuple[str, str]]
    """Those that ran before anything was said."""

    def command(self, words: str) -> StoredCommand | None:
        """Return what the daemon made of a comment; None where it saw nothing for it there."""
        number = self.comments[words]
        return next((c for c in self.stage.commands() if c.comment_id == number), None)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A daemon with one open pull request; who attacks it must leave it as it was."""
    with Stage(tmp_path_factory.mktemp("shown"), config=_OFTEN) as stage:
        stage.round()
        stage.push_operator("better 2.0")
        stage.turn()
        stage.round()
        yield stage


@pytest.fixture(scope="module")
def asked(shown: Stage) -> Asked:
    jobs = jobs_of(shown)
    number = shown.own_pulls()[-1].number
    words = ("/status", *SHELL, *UNICODE, *NUMBERS, *MARKUP)
    comments = {text: shown.github.comment(number, WRITER, text) for text in words}
    shown.rounds(30)
    shown.turn()
    return Asked(shown, comments, jobs)


_OFTEN = "version: 1\nlimits: {commands_per_hour: 1000}\n"


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Stage(tmp_path) as stage:
        stage.round()
        yield stage


def ask(stage: Stage, words: str, *, by: str = WRITER, number: int | None = None) -> int:
    """Write a comment and let the daemon answer it; return its number."""
    number = number or stage.own_pulls()[-1].number
    comment = stage.github.comment(number, by, words)
    stage.rounds(3)
    stage.turn()
    stage.rounds(2, pass_s=20)
    return comment


def check_harmless(stage: Stage) -> None:
    """Nothing that the daemon wrote pings, links, scripts or commands anybody."""
    bot = stage.github.bot.id
    world = stage.github.world
    texts = [c.body for c in world.comments.values() if c.user.id == bot]
    texts += [t.body or "" for t in world.tickets.values() if t.user.id == bot]
    for text in texts:
        # What stands in code spans and blocks is shown as it is.
        bare = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
        pinged = {name.lower() for name in re.findall(r"(?<![\w&])@([\w-]+)", bare)}
        assert pinged <= {WRITER, STRANGER}, text
        assert not re.search(r"<(?!/?(details|summary|sub|b|br|code)\b|!--)\w", bare), text
        assert not re.search(r"(?m)^\s*/[a-z]", text), text


def jobs_of(stage: Stage) -> list[tuple[str, str]]:
    return list(stage.jobs.ran)  # type: ignore[attr-defined] # the stage's own


SHELL = (
    "/optimize op=$(touch${IFS}pwned)",
    "/optimize op=`touch${IFS}pwned`",
    "/optimize op=gelu_bias;touch${IFS}pwned",
    "/optimize op=--upload-pack=touch${IFS}pwned",
    "/optimize op=../../../../etc/passwd",
    "/optimize hw=|touch${IFS}pwned",
    "/stop $(touch${IFS}pwned)",
    "/verify sha=$(touch${IFS}pwned)",
)


@pytest.mark.parametrize("words", SHELL)
def test_shell_in_an_argument_is_no_argument(asked: Asked, words: str) -> None:
    command = asked.command(words)

    assert command is not None
    assert (command.state, command.goal_key) in (("misunderstood", None), ("refused", None))
    assert set(asked.stage.reactions(asked.comments[words])) & {"confused", "-1"}
    assert not list(asked.stage.folder.rglob("pwned"))
    assert not Path("pwned").exists()


def test_no_argument_of_all_of_them_started_anything(asked: Asked) -> None:
    assert jobs_of(asked.stage) == asked.jobs
    assert asked.stage.store.pending_goals() == ()
    check_harmless(asked.stage)


MARKUP = (
    "/optimize op=a|b|c",
    "/optimize op=<img/src=x/onerror=alert(1)>",
    "/optimize op=[x](javascript:alert(1))",
    "/optimize op=`@octo/everyone`",
    "/optimize op=@octo",
    "/optimise @octo",
    "/optimize op=&#64;octo",
    "/optimize op=--></details><script>alert(1)</script>",
    "/stop #1",
    "/explain <!--",
)


@pytest.mark.parametrize("words", MARKUP)
def test_markup_in_an_argument_is_shown_as_text(asked: Asked, words: str) -> None:
    number = asked.stage.own_pulls()[-1].number
    (status,) = [text for text in asked.stage.said(number) if f"status {number} " in text]
    (row,) = [line for line in status.splitlines() if code(words) in line]

    assert row.count("|") == 6


UNICODE = (
    "/optimize\u202e op=gelu_bias",
    "/optimize op=gelu_b\u0456as",  # a Cyrillic i
    "/optimize budget=\uff11\uff10\uff10s",  # wide digits
    "/optimize budget=\u0661\u0660s",  # Arabic digits
    "/opt\u200bimize",
    "/optimize op=gelu_bias\u2060",
    "/optimize op=gelu_bias\x00",
    "/\u043eptimize",  # a Cyrillic o
    "/stop \u0000",
)


@pytest.mark.parametrize("words", UNICODE, ids=ascii)
def test_letters_that_look_like_others_start_nothing(asked: Asked, words: str) -> None:
    command = asked.command(words)

    assert command is None or command.state in {"misunderstood", "refused"}
    assert not set(asked.stage.reactions(asked.comments[words])) & {"+1", "hooray", "rocket"}


NUMBERS = tuple(
    f"/optimize budget={budget}"
    for budget in ("99999999h", "-5s", "0s", "nan", "inf", "1e309s", "5s5s", "1h/2")
)


@pytest.mark.parametrize("words", NUMBERS)
def test_a_budget_beyond_reason_starts_nothing(asked: Asked, words: str) -> None:
    command = asked.command(words)

    assert command is not None
    assert (command.state, command.goal_key) in (("misunderstood", None), ("refused", None))


JOBS = ("%", "________", "0' OR '1'='1", "*", "", "aaaaaaaa%", "verify/" + BRANCH)


def test_no_pattern_stops_the_jobs_of_others(shown: Stage) -> None:
    other = shown.github.open_issue(OWNER, "Something else")
    shown.github.comment(shown.own_pulls()[-1].number, WRITER, "/optimize budget=7s")
    shown.rounds(3)
    (goal,) = shown.store.pending_goals()

    for job in JOBS:
        shown.github.comment(other, WRITER, f"/stop {job}")
    shown.rounds(4)

    assert shown.store.pending_goals() == (goal,)
    shown.turn()
    shown.rounds(2)


def test_what_stands_in_an_issue_or_a_title_is_no_command(shown: Stage) -> None:
    before = len(shown.commands())

    shown.github.open_issue(WRITER, "/optimize", f"/optimize op={OPERATOR}")
    number = shown.github.open_issue(WRITER, "later", "nothing")
    shown.github.edit_issue(number, WRITER, body=f"/optimize op={OPERATOR}")
    shown.rounds(3)

    assert len(shown.commands()) == before


def test_a_long_comment_is_not_read_to_its_end(shown: Stage) -> None:
    before = len(shown.commands())

    shown.github.comment(shown.own_pulls()[-1].number, WRITER, "x" * 65_000 + "\n/optimize")
    shown.rounds(3)

    assert len(shown.commands()) == before


def test_a_stranger_whose_name_is_nearly_the_bots_can_not_speak_for_it(shown: Stage) -> None:
    pull = shown.own_pulls()[-1]
    before = [t.title for t in shown.github.issues() if t.user.id == shown.github.bot.id]
    marker = f"<!-- kernelevolve status {pull.number} -->"
    body = f"{marker}\n{pull.body}"
    spoof = shown.github.comment(pull.number, "kernelevolve", body)

    ask(shown, "/status")

    assert shown.github.world.comments[spoof].body == body
    said = [text for text in shown.said(pull.number) if marker in text]
    assert len(said) == 1
    assert before == [t.title for t in shown.github.issues() if t.user.id == shown.github.bot.id]


def test_a_strangers_pull_request_with_our_marker_is_not_ours(shown: Stage) -> None:
    body = shown.own_pulls()[-1].body or ""
    shown.github.push("feature", {"a.md": "a"}, WRITER)
    number = shown.github.open_pull_request(WRITER, "feature", body=body)

    comment = ask(shown, "/rebase", number=number)
    shown.rounds(4, pass_s=61)

    ticket = shown.github.world.tickets[number]
    assert (ticket.state, ticket.body, ticket.labels) == ("open", body, [])
    assert "-1" in shown.reactions(comment)
    shown.github.close(number, WRITER)


BRANCHES = (
    "--upload-pack=touch${IFS}pwned",
    "-oProxyCommand=touch${IFS}pwned",
    "$(touch${IFS}pwned)",
    "a;touch${IFS}pwned",
    "kernelevolve/<img/src=x>/x",
    "kernelevolve/gelu_bias/" + "x" * 200,
    "kernelevolve/a/b/c/d",
    "\u202egpj.x",
)


def test_branches_with_names_for_a_shell_change_nothing(stage: Stage) -> None:
    for number, branch in enumerate(BRANCHES):
        stage.github.push(branch, {"a.md": str(number)}, WRITER)
        stage.github.open_pull_request(WRITER, branch, title=branch)
    before = stage.github.git.heads()

    stage.push_operator("better 2.0")
    stage.turn()
    stage.rounds(6, pass_s=61)

    assert [p.state for p in stage.own_pulls()] == ["open"]
    after = stage.github.git.heads()
    assert {branch: after[branch] for branch in BRANCHES} == {b: before[b] for b in BRANCHES}
    assert set(after) == {"main", BRANCH, *BRANCHES}
    assert not list(stage.folder.rglob("pwned"))
    check_harmless(stage)


def test_a_fork_with_a_branch_of_our_name_is_not_taken_for_ours(stage: Stage) -> None:
    files = {f"kernels/{OPERATOR}/{HERE}/evidence.json": "{}"}
    fork = stage.github.open_pull_request_from_fork(STRANGER, files, branch=BRANCH)
    stage.push_operator("better 2.0")
    stage.turn()
    (ours,) = stage.own_pulls()
    marker = ours.body or ""
    stage.github.edit_issue(fork, STRANGER, body=marker)
    stage.github.close(fork, STRANGER)

    stage.push_operator("better 3.0", version=1)
    stage.turn()
    stage.rounds(4, pass_s=61)

    assert [(p.number, p.state) for p in stage.own_pulls()] == [(ours.number, "open")]
    assert "3.00x" in stage.own_pulls()[0].title
    theirs = stage.github.world.tickets[fork]
    assert (theirs.state, theirs.body, theirs.labels) == ("closed", marker, [])


def test_commands_below_a_fork_run_nothing_of_it(stage: Stage) -> None:
    stage.push_operator("none")
    stage.turn()
    fork = stage.github.open_pull_request_from_fork(STRANGER, {"a.py": "x"}, branch=BRANCH)
    before = jobs_of(stage)

    for words in ("/verify", "/benchmark", "/optimize", "/retry", "/rebase", "/hold"):
        ask(stage, words, number=fork)

    assert jobs_of(stage) == before
    assert {c.state for c in stage.commands()} == {"refused"}


def test_an_author_of_a_pull_request_may_nothing_by_that(stage: Stage) -> None:
    stage.push_operator("none")
    stage.turn()
    number = stage.github.open_pull_request_from_fork(STRANGER, {"a.md": "x"})

    comment = ask(stage, f"/optimize op={OPERATOR}", by=STRANGER, number=number)

    assert "-1" in stage.reactions(comment)
    assert len(jobs_of(stage)) == 1


def test_rights_that_are_taken_away_before_the_command_is_done_are_gone(stage: Stage) -> None:
    stage.github.quirks.associations_mislead = True
    stage.push_operator("none")
    stage.turn()
    issue = stage.github.open_issue(OWNER, "Faster, please")
    comment = stage.github.comment(issue, WRITER, f"/optimize op={OPERATOR}")
    stage.github.set_role(WRITER, "read")

    stage.rounds(4)
    stage.turn()

    assert "-1" in stage.reactions(comment)
    assert len(jobs_of(stage)) == 1


def test_a_head_that_is_moved_after_the_command_is_not_run(stage: Stage) -> None:
    stage.push_operator("better 2.0")
    stage.turn()
    (pull,) = stage.own_pulls()
    comment = stage.github.comment(pull.number, WRITER, "/verify")
    stage.stewards[0].run_round()
    stage.github.push(BRANCH, {f"kernels/{OPERATOR}/{HERE}/code": "evil"}, STRANGER)

    stage.rounds(4, pass_s=61)

    assert "-1" in stage.reactions(comment)
    assert [task for task, _ in jobs_of(stage)] == ["optimize"]


def test_a_commit_between_our_look_and_our_push_is_not_overwritten(stage: Stage) -> None:
    stage.push_operator("better 2.0")
    stage.turn()
    theirs = stage.github.push(BRANCH, {"notes.md": "mine"}, WRITER)

    stage.push_operator("better 3.0", version=1)
    stage.turn()
    stage.rounds(4, pass_s=61)

    assert stage.github.git.heads()[BRANCH] == theirs
    assert "human-edited" in stage.own_pulls()[0].labels


def test_a_reference_that_does_something_when_it_is_imported_is_only_parsed(stage: Stage) -> None:
    mark = stage.folder / "imported"
    files = operator_files("none")
    path = f"operators/{OPERATOR}/reference.py"
    files[path] = f"open({str(mark)!r}, 'w').write('x')\n" + files[path]

    stage.github.push("main", files, OWNER)
    stage.turn()
    stage.rounds(3)

    assert not mark.exists()


def test_owners_who_are_nobody_are_not_asked(stage: Stage) -> None:
    path = f"operators/{OPERATOR}/operator.yaml"
    files = operator_files("better 2.0")
    owners = 'owners: [octo, "@all", x/../y, "-rf"]'
    files[path] = files[path].replace(f"name: {OPERATOR}", f"name: {OPERATOR}\n{owners}")

    stage.github.push("main", files, OWNER)
    stage.turn()
    stage.rounds(4, pass_s=61)

    check_harmless(stage)
    pulls = [pull.pull for pull in stage.own_pulls() if pull.pull]
    assert {user.login for pull in pulls for user in pull.reviewers} <= {OWNER}
    assert [pull.teams for pull in pulls if pull.teams] == []


LARGE = {
    "an operator": f"operators/{OPERATOR}/operator.yaml",
    "a reference": f"operators/{OPERATOR}/reference.py",
    "the registry": "registry.yaml",
    "the configuration": CONFIG,
}


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A daemon that has nothing to do."""
    with Stage(tmp_path_factory.mktemp("settled")) as stage:
        stage.round()
        stage.push_operator("none")
        stage.turn()
        yield stage


@pytest.mark.parametrize("what", LARGE)
def test_a_file_of_ten_megabytes_is_told_and_not_read(settled: Stage, what: str) -> None:
    good = settled.github.git.read(settled.github.git.heads()["main"], LARGE[what])
    settled.github.push("main", {LARGE[what]: "# " + "x" * HUGE}, OWNER)

    settled.turn()
    settled.round(pass_s=61)

    faults = settled.bot.health.report(paused=False).faults
    assert faults or settled.bot.config.find_faults()
    assert len(jobs_of(settled)) == 1
    assert settled.store.pending_goals() == ()
    assert settled.bot.config.find_hold() is None
    settled.github.push("main", {LARGE[what]: good}, OWNER)


LINKS = {"operator.yaml": "/etc/passwd", "reference.py": "../../../../../../etc/hostname"}


def test_links_in_a_registry_lead_nowhere(stage: Stage) -> None:
    git = stage.github.git
    head = git.heads()["main"]
    for name, target in LINKS.items():
        blob = git.git("hash-object", "-w", "--stdin", stdin=target.encode())
        env = {"GIT_INDEX_FILE": str(stage.folder / "index"), "PATH": "/usr/bin:/bin"}
        git.git("read-tree", head, env=env)
        entry = f"120000,{blob},operators/linked/{name}"
        git.git("update-index", "--add", "--cacheinfo", entry, env=env)
        tree = git.git("write-tree", env=env)
        head = git.commit_tree(tree, (head,), by=OWNER, message="links", at=START)
    git.point("refs/heads/main", head)

    stage.turn()
    stage.rounds(3)

    told = " ".join(stage.bot.health.report(paused=False).faults)
    assert "root:" not in told
    assert stage.store.pending_goals() == ()
    assert stage.own_pulls() == []


CONFIGS = {
    "everybody may search": "version: 1\npermissions: {optimize: read}\n",
    "a mention for a label": "version: 1\nlabels: ['@octo/everyone']\n",
    "everybody for a reviewer": "version: 1\nreviewers: ['@all']\n",
    "an object of Python": "version: !!python/object/apply:os.system ['touch pwned']\n",
    "a bomb of aliases": "version: 1\nlabels: &a [x, x]\nhardware: [*a, *a]\n",
    "no version": "pause: false\n",
    "markup in a key": "version: 1\n'<img src=x onerror=alert(1)> @octo': 1\n",
}


@pytest.mark.parametrize("attack", CONFIGS)
def test_a_bad_configuration_never_holds(settled: Stage, attack: str) -> None:
    before = settled.bot.config.in_force()
    settled.github.push("main", {CONFIG: CONFIGS[attack]}, OWNER)

    settled.turn()
    settled.round(pass_s=61)

    assert settled.bot.config.find_faults()
    assert settled.bot.config.in_force() == before
    told = [t for t in settled.github.issues() if "is broken" in t.title]
    assert [t.state for t in told] == ["open"]
    assert not list(settled.folder.rglob("pwned"))
    check_harmless(settled)


def test_every_attack_of_the_table_is_a_test() -> None:
    table = (Path(__file__).with_name("ATTACKS.md")).read_text(encoding="utf-8")
    rows = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("| ")]
    named = [row[-1].strip().strip("`") for row in rows[2:]]

    assert len(named) >= 40
    for name in named:
        file, _, test = name.partition("::")
        assert f"def {test}(" in (_TESTS / file).read_text(encoding="utf-8"), name
