"""A model that knows one schedule beyond the synthesiser is credited, and its kernel is published.

The real job, as the daemon starts it, with the real judge and the real client; only the model is
scripted. It needs some tries, as models do.
"""

from pathlib import Path
from typing import Any

import pytest

from daemon.jobs import Jobs
from knowledge.evidence import Better
from operator_registry.registry import CATALOG, load_registry
from optimizer.job import OptimizeRequest, OptimizeResult
from optimizer.kernel import read_kernel
from optimizer.propose.exchange import Journal
from optimizer.propose.model import Answered, ModelSettings
from optimizer.propose.models import exchanges_folder
from optimizer.targets import host_cpu_arch
from tests.model.operators import PAIRS, PLAN, SQUARED
from tests.model_server import Deed, Refuses, Says, serving

KEY = "sk-planted-77aa31"
WRONG = SQUARED.replace("total * total", "total * total * 1.5")
BROKEN = SQUARED.replace("double total", "dubble total")


def says(code: str) -> Says:
    return Says(f"The pairs are a square.\n```cpp\n{code}```\n```json\n{PLAN}\n```")


SCRIPT: tuple[Deed, ...] = (
    Refuses(429, {"Retry-After": "0"}),
    Says("I would tile it."),
    says(BROKEN),
    says(WRONG),
)


@pytest.mark.drill
def test_its_kernel_is_credited_and_published_within_twenty_calls(tmp_path: Path) -> None:
    written = 0

    def act(_number: int, body: dict[str, Any]) -> Deed:
        nonlocal written
        if "response_format" in body:
            return Says('{"moves": [1]}')
        written += 1
        return SCRIPT[written - 1] if written <= len(SCRIPT) else says(SQUARED)

    key_file = tmp_path / "key"
    key_file.write_text(KEY, encoding="ascii")
    key_file.chmod(0o600)
    with serving(act) as server:
        request = OptimizeRequest(
            operator=PAIRS,
            hardware=load_registry(CATALOG).hardware[f"cpu-{host_cpu_arch()}"],
            goal_key="known schedule",
            store_url=f"sqlite:///{tmp_path}/store.sqlite",
            state_folder=tmp_path / "state",
            out_folder=tmp_path / "out",
            budget_s=150.0,
            model=ModelSettings(
                url=server.url, name="scripted", key_file=key_file, usd_in=1.0, usd_out=2.0
            ),
        )
        result = Jobs().run("optimize", request)

    assert isinstance(result, OptimizeResult)
    assert isinstance(result.verdict, Better), result.verdict
    assert result.candidate is not None
    assert result.candidate.origin == "scripted"
    assert result.evidence is not None
    assert result.evidence.search is not None
    assert result.evidence.search.proposer == "scripted"
    assert result.kernel_folder is not None
    (variant,) = read_kernel(result.kernel_folder).variants.values()
    assert "total * total" in variant.candidate.code
    assert len(server.asked) <= 20
    assert {headers["authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
    assert not any(KEY in prompt for prompt in server.prompts)
    journal = Journal(exchanges_folder(request.state_folder, request.goal_key))
    answered = [e for e in journal.exchanges() if isinstance(e.said, Answered)]
    assert len(answered) == len(server.asked) - 1
    assert journal.spent().tokens == 150 * len(answered)
    assert journal.spent().money_usd == pytest.approx(200e-6 * len(answered))
