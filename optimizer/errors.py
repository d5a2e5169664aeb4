"""What can stop a search. A bad candidate can't: that is an `Outcome`.

OptimizerError
├── ProposalError        the source of ideas is away, or its reply is no kernel
├── CaptureError         the reference can't be turned into a graph; says why
├── BuildError           (targets.target) the compiler refused the code; becomes `Failed`
├── PlanError            a launch plan can't be run as it is written; becomes `Failed`
├── CallError            the caller's tensors are not what the operator takes
├── StoreError           the database is away, or is of another schema version
├── KernelFolderError    a published kernel's folder is damaged or of another version
├── LandscapeError       a recorded landscape's file is damaged, or lacks points
├── KeyFileError         a signing key's file can't be read or written
├── ModelKeyError        the key of a model's endpoint can't be read, or others could read it
├── DegenerateOperatorError  (evaluate.admission) the operator's checks accept what nobody computed
├── UnsupportedDeviceError  the kernel is for a device that is not here
└── RunnerError          the machine failed, so nothing is known of the candidate
    ├── WorkerLostError  the worker process died between two candidates
    └── WeakSandboxError a wall around foreign code is missing, and nobody has accepted that
"""

from collections.abc import Sequence
from pathlib import Path


class OptimizerError(Exception):
    """The root of what the optimizer raises."""


class ProposalError(OptimizerError):
    """The source of ideas is away, or its reply holds no kernel."""


class CaptureError(OptimizerError):
    """The reference can't be turned into a graph."""


class PlanError(OptimizerError):
    """A launch plan can't be run as it is written."""


class CallError(OptimizerError, ValueError):
    """The caller's tensors or attributes are not what the operator takes."""


class StoreError(OptimizerError):
    """The database can't be used."""


class KernelFolderError(OptimizerError):
    """A published kernel's folder is damaged, or of another version."""


class LandscapeError(OptimizerError):
    """A recorded landscape can't be used."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path


class KeyFileError(OptimizerError):
    """A signing key's file can't be read or written."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} is no signing key: {reason}")
        self.path = path


class ModelKeyError(OptimizerError):
    """The key of a language model's endpoint can't be read, or others could read it."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"the model's key in {path} can't be used: {reason}")
        self.path = path


class UnsupportedDeviceError(OptimizerError):
    """The kernel is for a device that is not here."""

    def __init__(self, hardware: str, obstacle: str) -> None:
        super().__init__(f"a kernel for {hardware} can't run here: {obstacle}")
        self.hardware = hardware
        self.obstacle = obstacle


class RunnerError(OptimizerError):
    """The machine failed, so nothing is known of the candidate."""


class WeakSandboxError(RunnerError):
    """A foreign proposer's candidates would run where a wall around them is missing."""

    def __init__(self, proposer: str, missing: Sequence[str]) -> None:
        super().__init__(
            f"{proposer} is not allowed to propose: this machine has no wall of the kinds "
            f"{', '.join(missing)} around foreign code (see `kernelevolve doctor`); "
            "set KERNELEVOLVE_ACCEPT_WEAK_SANDBOX=1 to run its candidates nevertheless"
        )
        self.missing = tuple(missing)


class WorkerLostError(RunnerError):
    """The worker process died between two candidates; try again on a new one."""

    def __init__(self, pid: int, exit_code: int | None) -> None:
        super().__init__(f"worker {pid} is gone (exit code {exit_code})")
        self.pid = pid
        self.exit_code = exit_code
