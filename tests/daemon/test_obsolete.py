from dataclasses import replace

from daemon.pulls.body import make_draft
from daemon.pulls.obsolete import closing_title, find_better, find_reason, is_outdated
from operator_registry.registry import Registry, RegistryConfig
from tests.daemon.proposals import HEAD, make_proposal, make_shown
from tests.makers import HARDWARE, OPERATOR, make_candidate, make_evidence

PAIR = (OPERATOR.name, HARDWARE.name)
REGISTRY = Registry(
    RegistryConfig(hardware=(HARDWARE.name,)),
    operators={OPERATOR.name: OPERATOR},
    hardware={HARDWARE.name: HARDWARE},
)


def test_what_the_registry_asks_for_is_wanted() -> None:
    assert find_reason(PAIR, OPERATOR.digest, REGISTRY, is_pending=False) is None


def test_an_operator_or_a_hardware_that_is_gone_makes_it_needless() -> None:
    without = replace(REGISTRY, operators={})
    elsewhere = replace(REGISTRY, config=RegistryConfig(hardware=("other",)))

    assert find_reason(PAIR, None, without, is_pending=True) == (
        "the registry has no operator scale any more"
    )
    assert find_reason(PAIR, None, elsewhere, is_pending=True) == (
        "the registry no longer asks for kernels on cpu-x86-64-v3"
    )


def test_a_changed_operator_makes_it_needless_once_the_search_is_over() -> None:
    old = "0" * 64

    assert find_reason(PAIR, old, REGISTRY, is_pending=True) is None
    assert "has changed since" in (find_reason(PAIR, old, REGISTRY, is_pending=False) or "")


def test_an_unknown_version_is_no_other_one() -> None:
    assert not is_outdated(PAIR, None, REGISTRY)
    assert is_outdated(PAIR, "0" * 64, REGISTRY)
    assert is_outdated(("gone", "x"), OPERATOR.digest, REGISTRY)


def test_a_kernel_at_the_base_that_is_as_fast_makes_it_needless() -> None:
    ours, theirs = make_evidence(make_candidate("a"), 2.0), make_evidence(make_candidate("b"), 2.5)

    assert "measured at 2.50x, where this one has 2.00x" in (find_better(ours, theirs) or "")
    assert find_better(theirs, ours) is None
    assert find_better(ours, ours) is None
    assert find_better(ours, None) is None


def test_kernels_of_two_environments_are_not_compared() -> None:
    ours, theirs = make_evidence(make_candidate("a"), 2.0), make_evidence(make_candidate("b"), 2.5)
    environment = theirs.environment.model_copy(update={"torch": "3.0"})

    assert find_better(ours, theirs.model_copy(update={"environment": environment})) is None


def test_a_title_is_marked_once() -> None:
    shown = make_shown(make_draft(make_proposal(), head=HEAD, base="main"))
    once = shown.model_copy(update={"title": closing_title(shown)})

    assert once.title == "(obsolete) scale: 2.00x faster on cpu-x86-64-v3"
    assert closing_title(once) == once.title
