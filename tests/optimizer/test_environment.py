"""What a machine is, and what it can do."""

import shutil

import pytest
import torch

from operator_registry.registry import CATALOG, load_registry
from optimizer.doctor import CHECKS, examine
from optimizer.environment import detect_environment
from optimizer.job import Ability
from optimizer.targets import find_obstacle, host_cpu_arch, make_target

HARDWARE = load_registry(CATALOG).hardware


@pytest.fixture(scope="module")
def abilities() -> dict[str, Ability]:
    return {ability.name: ability for ability in examine()}


def test_a_processors_environment_names_all_that_times_depend_on() -> None:
    found = detect_environment(HARDWARE["cpu-x86-64-v3"])

    assert (found.arch, found.torch) == ("x86-64-v3", torch.__version__)
    assert (found.threads, found.triton) == (torch.get_num_threads(), "")
    assert found.device
    assert "g++" in found.compiler


@pytest.mark.skipif(torch.cuda.is_available(), reason="the device is here")
def test_an_absent_device_is_told_in_its_place() -> None:
    found = detect_environment(HARDWARE["h200"])

    assert found.device.startswith("absent; Triton's interpreter on ")
    assert (found.arch, found.driver) == ("sm_90", "")


@pytest.mark.gpu
def test_a_devices_environment_names_device_and_driver() -> None:
    found = detect_environment(HARDWARE["h200"])

    assert found.device == torch.cuda.get_device_name()
    assert found.driver


def test_everything_examined_is_told_once_and_what_is_absent_has_a_remedy(
    abilities: dict[str, Ability],
) -> None:
    assert len(abilities) == len(CHECKS)
    assert all(ability.able or ability.remedy for ability in abilities.values())


def test_what_this_test_suite_needs_is_found(abilities: dict[str, Ability]) -> None:
    able = {name for name, ability in abilities.items() if ability.able}

    assert {
        "build and run C++",
        "compile Triton for NVIDIA devices (sm_90 tried)",
        "check Triton without a device",
        "run foreign code behind walls",
    } <= able


def test_a_machine_without_a_device_says_what_is_needed_to_run_on_one(
    abilities: dict[str, Ability],
) -> None:
    ability = abilities["run and time on NVIDIA devices"]

    assert ability.able == torch.cuda.is_available()
    assert ability.able or "NVIDIA" in ability.remedy


def test_the_hosts_own_level_can_be_run_and_a_newer_one_can_not() -> None:
    own = HARDWARE["cpu-x86-64-v3"]
    newer = own.model_copy(update={"compile": own.compile.model_copy(update={"arch": "x86-64-v5"})})

    assert find_obstacle(own) is None
    assert find_obstacle(newer) == (
        f"this processor is {host_cpu_arch()}, which can't run code for x86-64-v5"
    )


def test_no_compiler_is_an_obstacle_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)

    assert "apt-get install g++" in str(find_obstacle(HARDWARE["cpu-x86-64-v3"]))


@pytest.mark.parametrize("name", HARDWARE)
def test_each_hardware_of_the_catalogue_has_a_target(name: str) -> None:
    target = make_target(HARDWARE[name])

    assert HARDWARE[name].compile.arch in target.toolchain
