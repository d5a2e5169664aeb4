import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.config.file import (
    BotConfig,
    Ceilings,
    Limits,
    Permissions,
    Thresholds,
    Window,
    cap,
    changes,
    describe,
    read_ceilings,
    read_config,
)
from operator_registry.document import parse_document
from operator_registry.json_schema import make_schema

EVERYTHING = """\
version: 1
pause: true
dry_run: true
hardware: ["cpu-*", h200]
windows:
  - {cron: "* 20-5 * * mon-fri", timezone: Europe/Berlin}
limits:
  open_pull_requests: 3
  pull_requests_per_hour: 1
  commits_per_hour: 2
  device_hours_per_day: 1.5
  search_minutes: 10
  commands_per_hour: 5
thresholds: {minimum_gain: 1.2, largest_regression: 0}
labels: [performance]
reviewers: [alice, acme/kernels]
permissions: {optimize: maintain, help: write}
"""


def faults(text: str) -> list[str]:
    return [
        str(fault).removeprefix(".github/kernelevolve.yml:") for fault in read_config(text).faults
    ]


def test_a_version_alone_is_the_defaults() -> None:
    assert read_config("version: 1\n").record == BotConfig()


def test_every_key_is_read() -> None:
    config = read_config(EVERYTHING).record

    assert config == BotConfig(
        pause=True,
        dry_run=True,
        hardware=("cpu-*", "h200"),
        windows=(Window(cron="* 20-5 * * mon-fri", timezone="Europe/Berlin"),),
        limits=Limits(
            open_pull_requests=3,
            pull_requests_per_hour=1,
            commits_per_hour=2,
            device_hours_per_day=1.5,
            search_minutes=10,
            commands_per_hour=5,
        ),
        thresholds=Thresholds(minimum_gain=1.2, largest_regression=0),
        labels=("performance",),
        reviewers=("alice", "acme/kernels"),
        permissions=Permissions(optimize="maintain", help="write"),
    )
    assert {key for key, _, _ in changes(BotConfig(), config)} == {
        *describe(BotConfig())
    } - {"version"} - {f"permissions.{p}" for p in Permissions.model_fields} | {
        "permissions.optimize", "permissions.help",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "1: is empty"),
        ("- version\n", "1: is no mapping"),
        ("pause: true\n", "1: version is missing; add `version: 1`"),
        ("version: 2\n", "1: version is the number 2, which is not known"),
        ("version: 1\npuase: true\n", "2: unknown key puase; did you mean 'pause'?"),
        (
            "version: 1\nlimits:\n  open_pull_request: 3\n",
            "3: unknown key limits.open_pull_request; did you mean 'open_pull_requests'?",
        ),
        ("version: 1\npause: yes\n", "2: pause should be true or false, is the text 'yes'"),
        ("version: 1\nlimits: {open_pull_requests: -1}\n", "must be greater than or equal to 0"),
        ("version: 1\nthresholds: {minimum_gain: 0.9}\n", "must be greater than or equal to 1"),
        ("version: 1\nthresholds: {largest_regression: 0.5}\n", "less than or equal to 0.02"),
        ("version: 1\nwindows:\n  - {cron: '* 24 * * *'}\n", "3: windows[0].cron: '24' is no hour"),
        (
            "version: 1\nwindows:\n  - cron: '* * * * *'\n    timezone: Europe/Berlim\n",
            "4: windows[0].timezone: there is no zone 'Europe/Berlim'; did you mean 'Europe/Berl",
        ),
        ("version: 1\nwindows: [{cron: '* * * * *', timezone: ../etc}]\n", "there is no zone"),
        ("version: 1\nhardware: [H200]\n", "2: hardware[0] is 'H200'"),
        ("version: 1\nlabels:\n  - ok\n  - '@all'\n", "4: labels[1] is '@all'"),
        ("version: 1\nreviewers: ['@alice']\n", "without @"),
        ('version: 1\nreviewers: ["a\\n"]\n', "reviewers[0] is"),
        ("version: 1\npermissions: {hepl: read}\n", "did you mean 'help'?"),
        ("version: 1\nversion: 1\n", "2: key 'version' stands here again"),
        ("version: &a 1\n", "sets the anchor"),
        ("version: !!python/name:os.system 1\n", "uses the tag"),
        ("version: 1\n# " + "x" * 300_000, "is larger than"),
    ],
)  # fmt: skip
def test_a_fault_has_its_line_and_a_remedy(text: str, wrong: str) -> None:
    found = faults(text)

    assert any(wrong in fault for fault in found), found
    assert all("; " in fault for fault in found)


@pytest.mark.parametrize(
    ("text", "is_good"),
    [
        (EVERYTHING, True),
        ("version: 1\n", True),
        ("pause: true\n", False),
        ("version: 2\n", False),
        ("version: 1\npuase: true\n", False),
        ("version: 1\npause: 'yes'\n", False),
        ("version: 1\nlimits: {open_pull_requests: -1}\n", False),
        ("version: 1\npermissions: {optimize: read}\n", False),
        ("version: 1\nwindows: [{timezone: UTC}]\n", False),
    ],
)
def test_an_editor_with_the_schema_says_the_same(text: str, *, is_good: bool) -> None:
    root, _ = parse_document("x", text)

    assert jsonschema_rs.is_valid(make_schema(BotConfig), root.plain()) == is_good
    assert bool(read_config(text).faults) != is_good


def test_no_command_that_costs_can_be_had_for_less_than_write() -> None:
    (found,) = faults("version: 1\npermissions: {optimize: triage}\n")

    assert "2: permissions.optimize is the text 'triage', which is not known" in found


def test_hardware_is_selected_by_patterns() -> None:
    config = BotConfig(hardware=("cpu-*", "h?00"))

    assert [config.selects(name) for name in ("cpu-x86-64-v3", "h200", "mi300x")] == [
        True, True, False,
    ]  # fmt: skip


def test_a_ceiling_limits_by_the_keys_that_it_gives_alone() -> None:
    ceilings = read_ceilings(
        "version: 1\nlimits: {device_hours_per_day: 8}\npermissions: {status: write}\n", "c.yml"
    ).record
    assert ceilings is not None
    asked = BotConfig(limits=Limits(device_hours_per_day=100, open_pull_requests=100))

    found = cap(asked, ceilings)

    assert changes(asked, found) == (
        ("limits.device_hours_per_day", "100", "8"),
        ("permissions.status", "read", "write"),
    )


def test_a_fault_in_the_ceilings_names_their_file() -> None:
    assert [str(fault) for fault in read_ceilings("version: 1\nlimit: {}\n", "c.yml").faults] == [
        "c.yml:2: unknown key limit; did you mean 'limits'?"
    ]


LEVELS = st.sampled_from(["write", "maintain", "admin"])
LIMITS = st.fixed_dictionaries(
    {}, optional={key: st.integers(0, 50) for key in Limits.model_fields}
).map(lambda given: Limits(**given))
PERMISSIONS = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(Permissions.model_fields, LEVELS)
).map(lambda given: Permissions(**given))
CONFIGS = st.builds(BotConfig, dry_run=st.booleans(), limits=LIMITS, permissions=PERMISSIONS)
CEILINGS = st.builds(Ceilings, dry_run=st.booleans(), limits=LIMITS, permissions=PERMISSIONS)
RANK = ("read", "triage", "write", "maintain", "admin").index


@given(CONFIGS, CEILINGS)
def test_nothing_is_ever_beyond_a_ceiling_and_nothing_is_widened(
    config: BotConfig, ceilings: Ceilings
) -> None:
    found = cap(config, ceilings)

    for key in Limits.model_fields:
        assert getattr(found.limits, key) <= getattr(config.limits, key)
        if key in ceilings.limits.model_fields_set:
            assert getattr(found.limits, key) <= getattr(ceilings.limits, key)
    for key in Permissions.model_fields:
        levels = [RANK(getattr(each.permissions, key)) for each in (found, config, ceilings)]
        assert levels[0] == max(levels)
    assert found.dry_run == (config.dry_run or ceilings.dry_run)
    assert cap(found, ceilings) == found


@given(st.text(max_size=200))
def test_any_text_is_a_configuration_or_has_faults(text: str) -> None:
    reading = read_config(text)

    assert reading.faults or reading.record is not None
