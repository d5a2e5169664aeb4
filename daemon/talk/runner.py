"""Does what people ask for, and leaves no command without an end that they can see.

Every step may be made again: what a command does has a key of the command's own, and its state is
noted last. A kill anywhere costs a repetition that changes nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from daemon.config.file import Configured
from daemon.forge import CodeHost, ForgeRefusedError, ForgeUnavailableError, NotThereError
from daemon.logs import find_log
from daemon.outbox import RESULT, STOP, React, post_reaction, post_sticky
from daemon.talk import deeds
from daemon.talk.answers import Answers
from daemon.talk.asking import Asking, FindRegistry
from daemon.talk.branch_asking import BranchAsking
from daemon.talk.commands import (
    Benchmark,
    Command,
    Explain,
    Help,
    Hold,
    Misunderstood,
    Optimize,
    Rebase,
    Reopen,
    Retry,
    Status,
    Stop,
    Unhold,
    Verify,
    parse,
)
from daemon.talk.deeds import Deed
from daemon.talk.explain import Explainer
from daemon.talk.lines import MOST_LINES
from daemon.talk.permissions import Permissions
from daemon.talk.rates import is_beyond_rate
from daemon.talk.scene import Scene, Scenes
from daemon.talk.stopping import Stopping
from optimizer.store import OPEN_STATES, Store, StoredCommand

log = find_log(__name__)
_PATIENCE_S = 600.0
"""So long the code host may keep us from looking up what somebody may do."""
_NEW_S = 30.0
"""A comment may be denied to be there for so long after it was written."""
_EVEN_PAUSED = (Stop, Status, Help)


@dataclass
class CommandRunner:
    """Brings every open command a step further; one runner for `/stop`, one for all others."""

    host: CodeHost
    store: Store
    config: Configured
    permissions: Permissions
    find_registry: FindRegistry
    is_paused: Callable[[], bool]
    clock: Callable[[], float]
    stops: bool
    """Whether it runs `/stop`, and nothing else, so that it never waits for another command."""
    _scenes: Scenes = field(init=False)

    def __post_init__(self) -> None:
        """Make its parts."""
        self._asking = Asking(
            self.store, self.config, self.permissions, self.find_registry, self.clock
        )
        self._branches = BranchAsking(self.store, self.config, self.permissions, self.clock)
        self._stopping = Stopping(self.store, self.clock)
        self._answers = Answers(self.store, self.clock)
        self._explainer = Explainer(self.host, self.store, self.clock)

    def run(self) -> None:
        """Begin what is new, and look what became of the rest. One that fails keeps no other."""
        self._scenes = Scenes(self.host)
        paused = self.is_paused()
        for command in reversed(self.store.commands(states=OPEN_STATES)):
            parsed = parse(command.text)
            if isinstance(parsed, Stop) != self.stops:
                continue
            if paused and not isinstance(parsed, _EVEN_PAUSED):
                continue
            self._step(command, parsed)

    def _step(self, command: StoredCommand, parsed: Command | Misunderstood) -> None:
        try:
            if command.state == "received":
                deed = self._begin(command, parsed)
            else:
                deed = self._follow(command, parsed)
        except ForgeUnavailableError as error:
            # Who may not be asked about is not obeyed; but nobody is turned away in a hurry.
            waited_s = self.clock() - command.received_at
            late = command.state == "received" and waited_s > _PATIENCE_S
            deed = deeds.failed("the code host did not answer; ask again") if late else None
            log.warning("command waits for the code host", command=command.id, error=str(error))
        except ForgeRefusedError as error:
            deed = deeds.failed(f"the code host refused: {error}")
        if deed is not None:
            self._note(command, deed, parsed)

    def _note(self, command: StoredCommand, deed: Deed, parsed: Command | Misunderstood) -> None:
        """Show and note what has become of a command, the note last."""
        now, even_paused = self.clock(), isinstance(parsed, _EVEN_PAUSED)
        if deed.reaction is not None:
            react = React(
                comment_id=command.comment_id, reaction=deed.reaction, while_paused=even_paused
            )
            post_reaction(self.store, react, now=now, priority=STOP if self.stops else RESULT)
        if deed.state == "failed":
            self._answers.tell_failure(command, deed.told)
        same = (command.state, command.told) == (deed.state, deed.told)
        if same:
            return
        self.store.change_command(
            command.id, state=deed.state, told=deed.told, now=now, goal_key=deed.goal_key
        )
        if self._answers.shows_status(command, deed):
            post_sticky(self.store, command.number, now=now, while_paused=even_paused)
        log.info(
            "command changed", command=command.id, number=command.number, author=command.author,
            text=command.text, state=deed.state, told=deed.told,
        )  # fmt: skip

    def _begin(self, command: StoredCommand, parsed: Command | Misunderstood) -> Deed | None:
        if no := self._find_no(command, parsed):
            return no
        assert not isinstance(parsed, Misunderstood)  # noqa: S101 - that is a no
        try:
            comment = self.host.comment(command.comment_id)
        except NotThereError:
            if self.clock() - command.received_at < _NEW_S:
                return None
            return Deed("refused", "its comment was deleted before it was done")
        if comment.author.id != command.author_id:
            return deeds.refused("its comment is somebody else's now")
        login = comment.author.login
        scene = self._scenes.look(command.number)
        if self._may(command, parsed, scene, login):
            return self._do(command, parsed, scene, login)
        least = getattr(self.config().permissions, parsed.kind)
        told = f"{parsed.kind} is for those with the permission {least}"
        self._answers.tell_denied(command, told)
        return deeds.refused(told)

    def _find_no(self, command: StoredCommand, parsed: Command | Misunderstood) -> Deed | None:
        """Return why a command is not even looked at, whoever gave it."""
        most = self.config().limits.commands_per_hour
        if is_beyond_rate(command, self.store, most=most):
            told = f"one person may give {most} commands an hour; ask again later"
            self._answers.tell_rate(command, told)
            return Deed("refused", told)
        if isinstance(parsed, Misunderstood) or self._is_too_many(command):
            why = getattr(parsed, "why", f"a comment may hold {MOST_LINES} commands, no more")
            self._answers.tell_misunderstood(command, why)
            return deeds.misunderstood(why)
        return None

    def _is_too_many(self, command: StoredCommand) -> bool:
        beside = self.store.commands(number=command.number)
        earlier = [c for c in beside if c.comment_id == command.comment_id and c.id < command.id]
        return len(earlier) >= MOST_LINES

    def _may(self, command: StoredCommand, parsed: Command, scene: Scene, login: str) -> bool:
        if isinstance(parsed, Stop):
            goals = self._stopping.targets(parsed, scene)
            if self._stopping.is_by_starter(goals, command.author_id):
                return True
        return self.permissions.allow(login, getattr(self.config().permissions, parsed.kind))

    def _do(self, command: StoredCommand, parsed: Command, scene: Scene, login: str) -> Deed:
        match parsed:
            case Stop():
                deed = self._stopping.stop(parsed, command, scene, login)
            case Optimize():
                deed = self._asking.optimize(parsed, command, scene, login)
            case Retry():
                deed = self._asking.retry(command, scene, login)
            case Hold() | Unhold():
                deed = self._branches.hold(parsed, scene, login)
            case Benchmark() | Verify():
                deed = self._branches.verify(parsed, command, scene, login)
            case Rebase():
                deed = self._branches.rebase(command, scene, login)
            case Reopen():
                deed = self._branches.reopen(command, scene, login)
            case Explain() | Status() | Help():
                deed = deeds.done(self._tell(command, parsed, scene))
        return deed

    def _tell(self, command: StoredCommand, parsed: Explain | Status | Help, scene: Scene) -> str:
        if isinstance(parsed, Explain):
            return self._explainer.explain(parsed.topic, command, scene)
        if isinstance(parsed, Status):
            return "the tables in this comment are up to date"
        return "the commands stand at the end of this comment"

    def _follow(self, command: StoredCommand, parsed: Command | Misunderstood) -> Deed | None:
        if isinstance(parsed, Stop):
            return self._stopping.follow(command)
        if isinstance(parsed, Optimize | Retry):
            return self._asking.follow(command)
        scene = self._scenes.look(command.number)
        if isinstance(parsed, Rebase | Reopen):
            return self._branches.follow(parsed.kind, command, scene)
        if isinstance(parsed, Benchmark | Verify):
            return self._branches.follow("verify", command, scene)
        return deeds.failed("another version of this program began it")
