"""The one issue by which owners learn that their configuration is broken, and that it is mended."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from daemon.board.own_issue import Host, OwnIssue
from daemon.config.file import CONFIG_PATH
from daemon.config.watch import ConfigWatch
from daemon.markdown import bullets, code, plain
from daemon.marks import Marks
from daemon.pause import find_pause
from operator_registry.record import digest

LABEL = "kernelevolve-config"
TITLE = f"{CONFIG_PATH} is broken"
_TOLD = "config/told"


@dataclass(frozen=True)
class ConfigNotice:
    """Tells of faults in an issue, which is used again and closed when they are gone.

    Where a person closes it, the same faults don't open it again.
    """

    host: Host
    marks: Marks
    config: ConfigWatch
    clock: Callable[[], float]

    def run(self) -> None:
        """Make the issue say what is wrong now, but while all is paused.

        Raises:
            ForgeError: The code host can't be asked now, or refuses.
        """
        if find_pause(self.marks) is not None:
            return
        faults = self.config.find_faults()
        told = digest(*faults) if faults else ""
        if told == (self.marks.recall(_TOLD) or ""):
            return
        issue = OwnIssue(self.host, self.marks, LABEL, self.clock)
        found = issue.find()
        if faults:
            hold = self.config.find_hold()
            issue.show(found, TITLE, render(faults, hold=hold), state="open")
        elif found is not None:
            issue.show(found, TITLE, _MENDED, state="closed")
        self.marks.mark(_TOLD, told)


def render(faults: Sequence[str], *, hold: str | None) -> str:
    """Return the issue's text.

    Args:
        faults: What is wrong, each with its file and line.
        hold: Why nothing is done meanwhile; None where the last good configuration holds.
    """
    meanwhile = "The last good configuration stays in force."
    if hold is not None:
        meanwhile = f"Nothing is done until it is mended: {plain(hold)}."
    return (
        f"{meanwhile}\n\n{bullets(plain(fault) for fault in faults[:_MOST_FAULTS])}\n\n"
        f"{code(f'kernelevolve config check {CONFIG_PATH}')} finds the same before a push. This "
        "issue is closed once the file is mended.\n"
    )


_MOST_FAULTS = 50
_MENDED = f"{code(CONFIG_PATH)} is mended, and in force.\n"
