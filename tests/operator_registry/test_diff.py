import pytest

from operator_registry.diff import goals
from operator_registry.registry import CATALOG, Registry, load_registry, parse_registry
from tests.operator_registry.small import CONFIG, DEVICE, FILES, MODEL, OPERATOR, SOURCE, edited

BEFORE = parse_registry(FILES)
OTHER_DEVICE = FILES[DEVICE].replace("name: box", "name: fox")
GPU = OTHER_DEVICE.replace("target: cpu", "target: cuda").replace("x86-64-v3", "sm_90")
GPU = GPU.replace("[cpp]", "[triton]")


def reasons(after: Registry) -> dict[str, tuple[str, ...]]:
    return {goal.hardware: goal.reasons for goal in goals(BEFORE, after)}


@pytest.mark.parametrize("registry", [BEFORE, load_registry(CATALOG)], ids=["small", "catalog"])
def test_a_registry_and_itself_make_no_goals(registry: Registry) -> None:
    assert goals(registry, registry) == ()


@pytest.mark.parametrize(
    ("path", "change"),
    [
        (OPERATOR, ("summary: Keeps", "summary: Holds")),
        (OPERATOR, ("owners: [somebody]", "owners: []")),
        (OPERATOR, ("schema: 1", "# a comment\nschema: 1")),
        (SOURCE, ('"""Cuts segments."""', '"""Cuts."""  # thus')),
        (DEVICE, ("vendor: any", "vendor: nobody\nsummary: A box.")),
        (DEVICE, ("languages: [cpp]", "languages: [cpp]\nrunner: {labels: [self-hosted]}")),
        (MODEL, ("name: ranker", "name: ranker\nsummary: Ranks.\nowners: [me]")),
        (CONFIG, ("budget_s: 30", "budget_s: 40")),
        (
            MODEL,
            (
                FILES[MODEL][FILES[MODEL].index("hardware") :],
                "hardware: [box]\nuses: [{operator: cut, workloads: [small], share_of_time: 0.5}]",
            ),
        ),
    ],
)
def test_prose_makes_no_goals(path: str, change: tuple[str, str]) -> None:
    assert goals(BEFORE, parse_registry(edited(path, change))) == ()


@pytest.mark.parametrize(
    ("path", "change", "reason"),
    [
        (SOURCE, ("place < longest", "place <= longest"), "reference changed"),
        (
            OPERATOR,
            ("reference: cut\nequivalents: [by_mask]", "reference: by_mask"),
            "reference is now by_mask",
        ),
        (OPERATOR, ("[by_mask]", "[]"), "equivalents changed"),
        (OPERATOR, ("max: 4096", "max: 8192"), "axes changed"),
        (OPERATOR, ("  k: 0", "  k: 1"), "precision changed"),
        (OPERATOR, ("{segments: 64}", "{segments: 66}"), "workload small changed"),
        (OPERATOR, ("name: short", "name: brief"), "workload brief added"),
        (OPERATOR, ("targets: [cpu]", "targets: [cuda]"), "workload short removed"),
        (DEVICE, ("dram_gb: 8", "dram_gb: 16"), "hardware's limits changed"),
        (
            DEVICE,
            ("languages: [cpp]", "languages: [cpp]\nenvironment: {torch: '2.13'}"),
            "environment moved: torch any -> 2.13",
        ),
        (MODEL, ("share_of_time: 0.5", "share_of_time: 0.6"), "use by model ranker changed"),
        (MODEL, ("[small]", "[small, short]"), "use by model ranker changed"),
    ],
)
def test_a_change_makes_a_goal_with_its_reason(
    path: str, change: tuple[str, str], reason: str
) -> None:
    assert reason in reasons(parse_registry(edited(path, change)))["box"]


def test_an_operator_added_makes_goals() -> None:
    files = {
        path.replace("/cut/", "/trim/"): text.replace("name: cut", "name: trim")
        for path, text in FILES.items()
        if "/cut/" in path
    }

    found = goals(BEFORE, parse_registry({**FILES, **files}))

    assert [(goal.operator, goal.reasons) for goal in found] == [("trim", ("operator added",))]


def test_everything_is_new_where_nothing_was() -> None:
    (goal,) = goals(None, BEFORE)

    assert goal.reasons == ("operator added", "model ranker uses it")


def test_hardware_makes_goals_once_it_is_searched_for() -> None:
    known = {**FILES, "hardware/fox.yaml": OTHER_DEVICE}
    searched = {**known, CONFIG: FILES[CONFIG].replace("[box]", "[box, fox]")}

    assert reasons(parse_registry(known)) == {}
    assert reasons(parse_registry(searched)) == {"fox": ("hardware added",)}


def test_a_workload_of_one_target_makes_no_goal_for_another() -> None:
    files = {
        **FILES,
        "hardware/fox.yaml": GPU,
        CONFIG: FILES[CONFIG].replace("[box]", "[box, fox]"),
    }
    before = parse_registry(files)
    after = parse_registry(
        {**files, OPERATOR: FILES[OPERATOR].replace("{segments: 128}", "{segments: 130}")}
    )

    assert [goal.hardware for goal in goals(before, after)] == ["box"]


def test_a_pair_that_is_never_measured_makes_no_goal() -> None:
    operator = FILES[OPERATOR].replace(
        "dtypes: {T: float32}", "dtypes: {T: float32}\n    targets: [cpu]"
    )
    files = {
        **FILES,
        "hardware/fox.yaml": GPU,
        CONFIG: FILES[CONFIG].replace("[box]", "[box, fox]"),
        OPERATOR: operator,
    }

    assert [goal.hardware for goal in goals(None, parse_registry(files))] == ["box"]


def test_what_is_gone_makes_no_goals() -> None:
    without_model = {path: text for path, text in FILES.items() if path != MODEL}

    assert goals(BEFORE, parse_registry(without_model)) == ()


def test_the_share_of_time_is_that_of_the_model_that_spends_most() -> None:
    lesser = FILES[MODEL].replace("name: ranker", "name: lesser").replace("0.5", "0.25")
    twice = FILES[MODEL].replace(
        "0.5}", "0.5}\n  - {operator: cut, workloads: [short], share_of_time: 0.25}"
    )

    (goal,) = goals(None, parse_registry({**FILES, "models/lesser.yaml": lesser, MODEL: twice}))

    assert goal.share_of_time == pytest.approx(0.75)
