from dataclasses import replace

from daemon.planner import Work, plan, published_digests, queued, registry_texts
from operator_registry.document import LARGEST_FILE_BYTES
from operator_registry.registry import CATALOG, load_registry

REGISTRY = load_registry(CATALOG)
CPU = "cpu-x86-64-v3"


def test_a_registry_seen_for_the_first_time_makes_a_goal_of_everything() -> None:
    found = {(g.operator, g.hardware) for g in plan(None, REGISTRY, published={})}

    assert found == {(o, h) for o in REGISTRY.operators for h in REGISTRY.config.hardware}


def test_what_has_a_kernel_of_the_same_version_is_no_goal_then() -> None:
    digest = REGISTRY.operators["gelu_bias"].digest

    found = plan(None, REGISTRY, published={("gelu_bias", CPU): digest, ("softmax", CPU): "old"})

    pairs = {(g.operator, g.hardware) for g in found}
    assert ("gelu_bias", CPU) not in pairs
    assert ("softmax", CPU) in pairs


def test_a_later_revision_makes_goals_of_what_changed() -> None:
    smaller = {k: v for k, v in REGISTRY.operators.items() if k != "softmax"}
    models = {
        name: model.model_copy(
            update={"uses": tuple(u for u in model.uses if u.operator != "softmax")}
        )
        for name, model in REGISTRY.models.items()
    }
    before = replace(REGISTRY, operators=smaller, models=models)

    assert {g.operator for g in plan(before, REGISTRY, published={})} == {"softmax"}


def test_the_same_revision_makes_the_same_key() -> None:
    goal = plan(None, REGISTRY, published={})[0]

    one, again = (queued(goal, REGISTRY, revision="1") for _ in range(2))

    assert one == again
    assert one.key != queued(goal, REGISTRY, revision="2").key


def test_the_queue_holds_all_that_a_search_needs() -> None:
    goal = next(g for g in plan(None, REGISTRY, published={}) if g.operator == "rms_norm")

    work = Work.from_json(queued(goal, REGISTRY, revision="1").payload)

    assert work.operator == REGISTRY.operators["rms_norm"]
    assert work.hardware == REGISTRY.hardware[goal.hardware]
    assert max(work.shares.values()) == goal.share_of_time


def test_only_the_registrys_own_files_are_read() -> None:
    files = {
        "registry.yaml": b"schema: 1",
        "operators/a/operator.yaml": b"a",
        "operators/a/deep/er.yaml": b"b",
        "operators/README.md": b"c",
        "hardware/x.yaml": b"\xff",
        "setup.py": b"d",
    }

    texts = registry_texts(files)

    assert set(texts) == {"registry.yaml", "operators/a/operator.yaml", "hardware/x.yaml"}
    assert texts["hardware/x.yaml"] == "\udcff"


def test_a_huge_file_is_cut_where_its_size_is_a_fault_already() -> None:
    texts = registry_texts({"registry.yaml": b"#" * (4 * LARGEST_FILE_BYTES)})

    assert len(texts["registry.yaml"]) == LARGEST_FILE_BYTES + 1


def test_a_damaged_kernel_folder_is_no_kernel() -> None:
    operator = REGISTRY.operators["softmax"]
    files = {
        f"softmax/{CPU}/operator.json": operator.to_json().encode(),
        "softmax/h200/operator.json": b"{}",
    }

    assert published_digests(files) == {("softmax", CPU): operator.digest}
