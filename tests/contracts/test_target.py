"""What every `Target` promises, on real compilers."""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest

from optimizer.targets.artefact import read_artefact
from optimizer.targets.cpu import CpuTarget, host_cpu_arch
from optimizer.targets.cuda import CudaTarget
from optimizer.targets.target import Artefact, Build, BuildError, Instance, Target
from tests.optimizer.plans import CPP, TRITON


@dataclass(frozen=True)
class Case:
    name: str
    target: Target
    code: str
    form: Instance


CASES = (
    Case(
        "cpu",
        CpuTarget(host_cpu_arch()),
        CPP,
        Instance(
            kernel="add",
            types=("*fp32", "*fp32", "*fp32", "i64"),
            constants=(("T", "float32"),),
            warps=1,
        ),
    ),
    Case(
        "cuda",
        CudaTarget("sm_90"),
        TRITON,
        Instance(
            kernel="add",
            types=("*fp32", "*fp32", "*fp32", "i32"),
            divisible=(True, True, True, False),
            constants=(("BLOCK", 128),),
        ),
    ),
)
LOADABLE = tuple(
    pytest.param(case, id=case.name, marks=pytest.mark.gpu if case.name == "cuda" else ())
    for case in CASES
)


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    chosen: Case = request.param
    return chosen


def build(case: Case, folder: Path, *, code: str | None = None) -> Artefact | BuildError:
    (built,) = case.target.build([Build(code=code or case.code, instances=(case.form,))], [folder])
    return built


def test_a_build_tells_each_compiled_instance_with_its_files_hash(
    case: Case, tmp_path: Path
) -> None:
    built = build(case, tmp_path)

    assert isinstance(built, Artefact)
    (compiled,) = built.compiled
    assert (compiled.kernel, compiled.symbol) == ("add", case.form.symbol)
    assert compiled.sha256 == sha256((tmp_path / compiled.file).read_bytes()).hexdigest()


def test_the_artefact_is_written_beside_its_files(case: Case, tmp_path: Path) -> None:
    built = build(case, tmp_path)

    assert read_artefact(tmp_path, target=case.name) == built


def test_the_artefact_names_the_source_it_was_made_from(case: Case, tmp_path: Path) -> None:
    built = build(case, tmp_path)

    assert isinstance(built, Artefact)
    assert built.source_sha256 == sha256(case.code.encode()).hexdigest()


def test_results_come_in_the_order_of_the_builds(case: Case, tmp_path: Path) -> None:
    codes = [case.code, "nonsense", case.code + "\n"]
    builds = [Build(code=code, instances=(case.form,)) for code in codes]

    built = case.target.build(builds, [tmp_path / str(i) for i in range(3)])

    assert [type(result) for result in built] == [Artefact, BuildError, Artefact]


def test_code_without_the_wanted_kernel_is_refused_by_name(case: Case, tmp_path: Path) -> None:
    built = build(case, tmp_path, code=case.code.replace("add", "other"))

    assert isinstance(built, BuildError)
    assert "add" in str(built)


def test_nothing_is_no_work(case: Case) -> None:
    assert list(case.target.build([], [])) == []


def test_a_folder_without_an_artefact_can_not_be_loaded(case: Case, tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"artefact\.json"):
        case.target.load(tmp_path)


def test_a_toolchain_is_told(case: Case) -> None:
    assert case.target.toolchain


@pytest.mark.parametrize("loadable", LOADABLE)
def test_a_loaded_table_has_what_was_built_and_nothing_else(loadable: Case, tmp_path: Path) -> None:
    build(loadable, tmp_path)

    table = loadable.target.load(tmp_path)

    assert callable(table.launcher(loadable.form))
    with pytest.raises(KeyError, match="was not built"):
        table.launcher(loadable.form.model_copy(update={"kernel": "rms"}))
