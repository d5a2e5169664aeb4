"""Tensors in shared memory, and folders that go with their process."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from optimizer.evaluate import scratch
from optimizer.evaluate.memory import (
    bytes_of,
    map_file,
    read_output,
    read_value,
    reserve,
    scrub,
    take_file,
    write_file,
    write_value,
)
from optimizer.evaluate.protocol import Form, TensorFile


@pytest.mark.parametrize(
    "tensor",
    [
        torch.randn(3, 5),
        torch.randn(2, 3).to(torch.bfloat16),
        torch.tensor([True, False]),
        torch.tensor(7),
        torch.empty(0, 4),
        torch.randn(4, 4).t(),
        torch.tensor([2**62, -1]),
    ],
    ids=["float32", "bfloat16", "bool", "scalar", "empty", "transposed", "int64"],
)
def test_a_tensor_comes_back_as_it_went(tensor: torch.Tensor, tmp_path: Path) -> None:
    back = map_file(write_file(tmp_path / "t", tensor))

    assert back.dtype == tensor.dtype
    assert torch.equal(back, tensor)


def test_a_list_of_tensors_comes_back_as_a_list(tmp_path: Path) -> None:
    value = [torch.arange(n) for n in range(3)]

    back = read_value(write_value(tmp_path, "v", value))

    assert isinstance(back, list)
    assert all(torch.equal(a, b) for a, b in zip(back, value, strict=True))


def test_writing_into_a_mapped_file_is_seen_by_others(tmp_path: Path) -> None:
    (file,) = reserve(tmp_path, "o", [Form(shape=(4,), dtype="float32")])

    map_file(file).fill_(3)

    assert map_file(file).tolist() == [3, 3, 3, 3]


def test_what_was_taken_is_out_of_everybodys_reach(tmp_path: Path) -> None:
    file = write_file(tmp_path / "t", torch.arange(3))

    taken = take_file(file)

    assert taken.tolist() == [0, 1, 2]
    assert not Path(file.path).exists()


def test_a_copy_does_not_follow_the_file(tmp_path: Path) -> None:
    file = write_file(tmp_path / "t", torch.zeros(3))
    copy = read_value(file)

    map_file(file).fill_(1)

    assert isinstance(file, TensorFile)
    assert isinstance(copy, torch.Tensor)
    assert copy.tolist() == [0, 0, 0]


def test_bytes_of_a_tensor_are_its_memory() -> None:
    tensor = torch.zeros(2, 3, dtype=torch.float32)

    bytes_of(tensor).fill_(0xFF)

    assert tensor.isnan().all()
    assert bytes_of(torch.tensor(1.0)).numel() == 4


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool", "int64"])
def test_an_output_is_read_as_it_was_written(dtype: str, tmp_path: Path) -> None:
    (file,) = reserve(tmp_path, "o", [Form.model_validate({"shape": (2, 3), "dtype": dtype})])
    map_file(file).fill_(1)

    read = read_output(file)

    assert read is not None
    assert torch.equal(read, map_file(file))


@pytest.mark.parametrize("damage", ["cut", "gone", "link"])
def test_a_damaged_output_is_noticed_and_mended(damage: str, tmp_path: Path) -> None:
    (file,) = reserve(tmp_path, "o", [Form(shape=(64,), dtype="float32")])
    path, other = Path(file.path), tmp_path / "other"
    other.write_bytes(b"secret" * 100)
    path.unlink()
    if damage == "cut":
        path.write_bytes(b"x")
    if damage == "link":
        path.symlink_to(other)

    assert read_output(file) is None
    if damage != "link":
        scrub((file,), 0)
        assert read_output(file) is not None
    assert other.read_bytes() == b"secret" * 100


def test_scrubbed_files_hold_nothing_old(tmp_path: Path) -> None:
    files = reserve(tmp_path, "o", [Form(shape=(3,), dtype="float32")] * 2)
    map_file(files[1]).fill_(1)

    scrub((files,), 0xFF)

    assert all(map_file(file).isnan().all() for file in files)


def test_the_folder_of_a_killed_process_is_swept_up() -> None:
    code = "from optimizer.evaluate.scratch import make_scratch; print(make_scratch())"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        cwd=Path(scratch.__file__).parents[2],
    )  # fmt: skip
    left = Path(done.stdout.strip())
    mine = scratch.make_scratch()
    assert left.exists()

    scratch.remove_stale()

    assert not left.exists()
    assert mine.exists()
    mine.rmdir()
