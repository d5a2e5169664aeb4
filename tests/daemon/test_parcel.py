import base64
import os
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from daemon.actions import parcel
from daemon.actions.parcel import (
    LARGEST_BYTES,
    LONGEST_INPUTS,
    Answer,
    FilePath,
    ParcelError,
    SearchParcel,
    VerifyParcel,
    fingerprint,
    folder_files,
    lay_out,
    make_parcel,
    pack,
    read_answer,
    unpack,
)
from operator_registry.registry import CATALOG, load_registry
from optimizer.job import DoctorRequest, ErrorEvent, OptimizeRequest, VerifyRequest
from optimizer.kernel import read_kernel
from optimizer.signing import new_key, read_signer, sign_folder
from tests.makers import HARDWARE

ROOT = Path(__file__).parents[2]
KERNELS = sorted(path.parent for path in (ROOT / "kernels").glob("*/*/dispatch.json"))
OPERATORS = tuple(load_registry(CATALOG).operators.values())
PATH: TypeAdapter[str] = TypeAdapter(FilePath)


def make_request(folder: Path, incumbent: Path | None = None) -> OptimizeRequest:
    return OptimizeRequest(
        operator=OPERATORS[0],
        hardware=HARDWARE,
        goal_key="k",
        store_url="postgresql://user:password@store/db",
        state_folder=folder / "state",
        out_folder=folder / "out",
        incumbent_folder=incumbent,
    )


def test_a_parcel_arrives_as_it_was_sent(tmp_path: Path) -> None:
    sent = make_parcel(make_request(tmp_path, KERNELS[0]))

    assert unpack(pack(sent)) == sent


def test_no_path_and_no_database_travels(tmp_path: Path) -> None:
    text = make_parcel(make_request(tmp_path, KERNELS[0])).to_json()

    assert "password" not in text
    assert str(tmp_path) not in text
    assert str(ROOT) not in text


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_every_operator_of_the_catalogue_fits(operator: object, tmp_path: Path) -> None:
    largest = max(KERNELS, key=lambda folder: len(str(folder_files(folder))))
    request = make_request(tmp_path, largest).model_copy(update={"operator": operator})

    assert len(pack(make_parcel(request))) < LONGEST_INPUTS / 2


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_kernel_that_arrives_can_be_replayed(kernel: Path, tmp_path: Path) -> None:
    request = VerifyRequest(kernel_folder=kernel, state_folder=tmp_path)
    arrived = unpack(pack(make_parcel(request)))
    assert isinstance(arrived, VerifyParcel)

    folder = lay_out(arrived.kernel, tmp_path / "kernel")

    assert read_kernel(folder) == read_kernel(kernel)


def test_a_signature_holds_where_it_arrives(tmp_path: Path) -> None:
    kernel = lay_out(folder_files(KERNELS[0]), tmp_path / "signed")
    signer = new_key(tmp_path / "key")
    sign_folder(kernel, tmp_path / "key")

    folder = lay_out(folder_files(kernel), tmp_path / "arrived")

    assert read_signer(folder) == signer


def test_what_is_too_long_for_a_workflow_is_not_sent() -> None:
    noise = os.urandom(60_000).hex()
    parcel = VerifyParcel(kernel={"operator.json": noise}, budget_s=1)

    with pytest.raises(ParcelError, match=r"characters, \d+ at most can be sent to a runner"):
        pack(parcel)


def test_other_jobs_stay_here() -> None:
    with pytest.raises(ParcelError, match="for this machine only"):
        make_parcel(DoctorRequest())


def test_a_link_in_a_kernels_folder_is_not_followed(tmp_path: Path) -> None:
    folder = lay_out({"operator.json": "{}"}, tmp_path / "kernel")
    (folder / "hardware.json").symlink_to("/etc/passwd")

    assert folder_files(folder) == {"operator.json": "{}"}


@pytest.mark.parametrize(
    "path",
    ["../x", "/etc/passwd", "a/../b", ".git/c", "a//b", "", "a/b/c/d", "a\\b", "a\n", "-x", "é"],
)
def test_a_file_stays_in_its_folder(path: str) -> None:
    with pytest.raises(ValidationError):
        PATH.validate_python(path)
    with pytest.raises(ParcelError):
        unpack(packed(f'{{"task":"verify","kernel":{{"{path}":""}},"budget_s":1}}'))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not base64!",
        "AAAA",
        base64.b64encode(b"not zlib").decode(),
        base64.b64encode(zlib.compress(b"{}")).decode(),
        base64.b64encode(zlib.compress(b'{"task":"doctor"}')).decode(),
        base64.b64encode(zlib.compress(b"{}")[:-3]).decode(),
        base64.b64encode(zlib.compress(b"[" * 100_000)).decode(),
    ],
)
def test_what_is_no_request_is_refused(text: str) -> None:
    with pytest.raises(ParcelError, match="request"):
        unpack(text)


def test_a_small_text_that_unpacks_to_a_huge_one_is_refused() -> None:
    bomb = base64.b64encode(zlib.compress(b" " * (LARGEST_BYTES * 4), 9)).decode()
    assert len(bomb) < LONGEST_INPUTS

    with pytest.raises(ParcelError, match="larger than"):
        unpack(bomb)


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    with pytest.raises(ParcelError):
        unpack(text)


@given(st.binary())
def test_no_bytes_break_the_reader_of_answers(content: bytes) -> None:
    with pytest.raises(ParcelError):
        read_answer(content, request="")


def test_a_request_with_an_unknown_key_is_refused(tmp_path: Path) -> None:
    parcel = make_parcel(make_request(tmp_path))
    text = parcel.to_json().replace('"budget_s"', '"store_url":"sqlite://","budget_s"')

    with pytest.raises(ParcelError, match="store_url"):
        unpack(packed(text))


def test_an_answer_is_to_its_own_request_alone() -> None:
    end = ErrorEvent(error="E", message="m")
    answer = Answer(request=fingerprint("one"), end=end)

    assert read_answer(answer.to_json().encode(), request=fingerprint("one\n")).end == end
    with pytest.raises(ParcelError, match="another request"):
        read_answer(answer.to_json().encode(), request=fingerprint("two"))


def test_an_answer_that_is_too_large_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parcel, "LARGEST_BYTES", 10)

    with pytest.raises(ParcelError, match="larger than 10 bytes"):
        read_answer(b" " * 11, request="")


def packed(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode())).decode()


def test_the_key_of_a_search_is_its_goals(tmp_path: Path) -> None:
    request = make_request(tmp_path)
    again = request.model_copy(update={"incumbent_folder": KERNELS[0]})

    assert parcel.find_key(request) == parcel.find_key(again) == "k"


def test_a_search_is_asked_for_by_the_rules_of_its_request(tmp_path: Path) -> None:
    sent = make_parcel(make_request(tmp_path).model_copy(update={"alpha": 0.01, "budget_s": 7.0}))

    assert isinstance(sent, SearchParcel)
    assert (sent.alpha, sent.budget_s, sent.minimum_gain) == (0.01, 7.0, 1.05)
