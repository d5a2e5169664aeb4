from daemon.pulls.standing import (
    Judged,
    NotReplayed,
    Replayed,
    find_standing,
    note_standing,
    sum_up,
)
from optimizer.job import (
    CannotRun,
    CannotTell,
    Finding,
    NotReproduced,
    Reproduced,
    Verification,
)

SHA = "a" * 40


class Marks(dict[str, str]):
    def mark(self, key: str, value: str) -> None:
        self[key] = value

    def recall(self, key: str) -> str | None:
        return self.get(key)


def replayed(*findings: Finding) -> Replayed:
    return Replayed(
        verifications=tuple(
            Verification(
                variant=f"v{n}", candidate="c", finding=f, ratio=2.0, checked_sizes=9, at=""
            )
            for n, f in enumerate(findings)
        )
    )


def test_what_is_noted_is_found_again() -> None:
    marks = Marks()
    for standing in (Judged(), replayed(Reproduced()), NotReplayed(why="no device")):
        note_standing(marks, SHA, standing)

        assert find_standing(marks, SHA) == standing
    assert find_standing(marks, "b" * 40) is None


def test_what_another_version_noted_is_found_out_again() -> None:
    marks = Marks({f"standing/{SHA}": '{"kind":"guessed"}'})

    assert find_standing(marks, SHA) is None


def test_the_worst_variant_decides() -> None:
    wrong, unclear = NotReproduced(reason="slower"), CannotTell(reason="noise")

    assert sum_up(replayed(Reproduced(), unclear, wrong)) == ("not_reproduced", "slower")
    assert sum_up(replayed(Reproduced(), unclear)) == ("cannot_tell", "noise")
    assert sum_up(replayed(Reproduced(), CannotRun(reason="no gpu"))) == ("cannot_run", "no gpu")
    assert sum_up(replayed()) == ("cannot_run", "there is no kernel in the folder")


def test_a_reproduced_kernel_is_told_with_its_figures() -> None:
    assert sum_up(replayed(Reproduced())) == (
        "reproduced",
        "reproduced with new seeds at 9 sizes, 2.00x of the best peer's speed",
    )
