"""The proposers of a language model, put together for one search."""

import hashlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from operator_registry.hardware import HardwareSpec
from operator_registry.registry import Operator
from optimizer.propose.caller import Caller
from optimizer.propose.directive import Director
from optimizer.propose.documents import find_regions
from optimizer.propose.exchange import Journal
from optimizer.propose.model import Model, ModelSettings
from optimizer.propose.purse import Purse
from optimizer.propose.synthesis.proposer import SynthesisProposer
from optimizer.propose.tuner import Tuner
from optimizer.propose.writer import Writer
from optimizer.spending import Spending

FOLDER: Final = "exchanges"
"""In the state folder; one folder a search in it."""
SHARE: Final = 0.25
"""A question takes no more of a search's seconds."""


def make_caller(  # noqa: PLR0913 - a caller is of one search, and these say which
    settings: ModelSettings,
    *,
    state_folder: Path,
    goal_key: str,
    budget_s: float,
    charged: Mapping[str, Spending] | None = None,
    model: Model | None = None,
) -> Caller:
    """Return what asks the model for one search; what earlier processes of it spent counts.

    Args:
        settings: Which model, and its limits.
        state_folder: Where exchanges are kept.
        goal_key: Names the search.
        budget_s: Its seconds.
        charged: What the search's ledger knows already, by source.
        model: Who answers; the endpoint of the settings unless given.

    Raises:
        ModelKeyError: The endpoint's key can't be used.
    """
    settings = settings.model_copy(update={"timeout_s": min(settings.timeout_s, SHARE * budget_s)})
    if model is None:
        # Half a second to import, and most searches ask no model.
        from optimizer.propose.llm import Endpoint, read_key  # noqa: PLC0415

        model = Endpoint(settings, read_key(settings.key_file, state_folder=state_folder))
    journal = Journal(exchanges_folder(state_folder, goal_key))
    spent = journal.spent_by_source()
    purse = Purse(
        settings,
        spent=sum(spent.values(), Spending()),
        owed={name: what.beyond((charged or {}).get(name)) for name, what in spent.items()},
    )
    return Caller(model, settings, journal, purse, time.sleep, time.monotonic)


def make_model_proposers(
    operator: Operator,
    hardware: HardwareSpec,
    caller: Caller,
    *,
    own: Sequence[SynthesisProposer | Tuner],
) -> tuple[Writer | Director, ...]:
    """Return the model's proposers in the modes that are set.

    Args:
        operator: What is computed.
        hardware: On what.
        caller: Asks the model.
        own: This program's proposers, among whose moves it picks.
    """
    mode = caller.settings.mode
    proposers: list[Writer | Director] = []
    if mode in ("write", "both"):
        drafts = [d for each in own if isinstance(each, SynthesisProposer) for d in each.drafts]
        proposers.append(Writer(operator, hardware, caller, find_regions(drafts)))
    if mode in ("direct", "both"):
        proposers.append(Director(operator, hardware, caller, own))
    return tuple(proposers)


def exchanges_folder(state_folder: Path, goal_key: str) -> Path:
    """Return the folder of a search's exchanges; a key may hold any sign."""
    name = hashlib.sha256(goal_key.encode()).hexdigest()[:32]
    return state_folder / FOLDER / name
