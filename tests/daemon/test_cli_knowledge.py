import json

import pytest

from daemon.cli.main import main
from knowledge.library import Library, make_index


def found(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [row["name"] for row in json.loads(capsys.readouterr().out)["documents"]]


def test_without_a_query_the_index_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["knowledge"]) == 0
    assert capsys.readouterr().out == make_index(Library.load())


def test_an_errors_message_finds_what_answers_it(capsys: pytest.CaptureFixture[str]) -> None:
    words = "kernel wants 262144 bytes of shared memory, over 232448"

    assert main(["knowledge", *words.split(), "--hardware", "h200", "--json"]) == 0
    assert found(capsys)[0] == "debugging/out_of_resources"


def test_a_document_is_shown_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["knowledge", "patterns/scan"]) == 0

    said = capsys.readouterr().out
    assert said.startswith("# Scans and prefix sums\n")
    assert "- https://triton-lang.org/" in said


def test_other_languages_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["knowledge", "vectorise", "loops", "--language", "triton", "--json"]) == 0
    assert "languages/cpp/vectorisation" not in found(capsys)


def test_a_device_that_only_documents_know_is_admitted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["knowledge", "--hardware", "mi300x", "--json"]) == 0
    assert found(capsys) == ["hardware/amd/cdna3"]


def test_kinds_of_region_find_their_pattern(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["knowledge", "--region", "table search", "--json"]) == 0
    assert found(capsys)[0] == "patterns/table_search"


def test_constraints_are_found_by_their_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["knowledge", "TUNABLES", "literal", "--json"]) == 0
    assert "constraints/plan" in found(capsys)


def test_nothing_found_is_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["knowledge", "zebra"]) == 1
    assert "no document speaks of this" in capsys.readouterr().out


def test_an_unknown_device_is_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["knowledge", "--hardware", "abacus"]) == 2
    assert "knows the hardware abacus" in capsys.readouterr().err
