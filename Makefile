# Every target sets up what it needs. `make test` and `make demo` work on a fresh clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp
export PIP_DISABLE_PIP_VERSION_CHECK := 1
PARTS := drill-bench drill-cheats drill-daemon drill-days drill-fleet drill-github drill-judge drill-kills drill-knowledge drill-model drill-redteam drill-schedule drill-search drill-soak drill-store drill-synthesis drill-whole
DRILLS_bench := tests/optimizer/test_bench_aa.py tests/optimizer/landscapes
DRILLS_cheats := tests/model/test_cheating_model.py
DRILLS_daemon := tests/daemon
DRILLS_days := tests/days
DRILLS_fleet := tests/fleet
DRILLS_github := tests/github
DRILLS_judge := tests/contracts tests/optimizer/evaluate tests/optimizer/test_main.py
DRILLS_kills := tests/kills
DRILLS_knowledge := tests/knowledge
DRILLS_model := tests/model/test_small_model.py
DRILLS_redteam := tests/optimizer/redteam
DRILLS_schedule := tests/model/test_known_schedule.py
DRILLS_search := tests/optimizer/search
DRILLS_soak := tests/soak
DRILLS_store := tests/optimizer/store tests/operator_registry tests/optimizer/test_warm_start_saving.py
DRILLS_synthesis := tests/optimizer/propose
DRILLS_whole := tests/whole

.PHONY: setup postgres test demo lint types test-long $(addprefix test-long-,$(PARTS)) clean

setup: $(STAMP)

# torch first and by exact version: a range would take the CUDA build, several gigabytes.
$(STAMP): pyproject.toml constraints.txt
	@command -v g++ >/dev/null || { echo "g++ is missing: apt-get install g++"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt torch==$$(sed -n 's/^torch==//p' constraints.txt)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $(STAMP)

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

types: $(STAMP)
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python

# The store's tests run on PostgreSQL too: taken from Debian where we may, and left out, in words, where it can't be had.
postgres:
	@ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 \
	|| { test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -qq -y postgresql >/dev/null; } \
	|| echo "PostgreSQL is missing, so half of the store's tests is skipped: apt-get install postgresql"

test: $(STAMP) postgres
	$(BIN)/pytest -q -m "not drill and not alone" -n 3 --dist loadfile
	$(BIN)/pytest -q -m "not drill and alone"

demo: $(STAMP)
	$(BIN)/kernelevolve demo

# Slow: each part ends within 10 minutes.
test-long: $(addprefix test-long-,$(PARTS))

$(addprefix test-long-,$(PARTS)): test-long-drill-%: $(STAMP)
	$(BIN)/pytest -q -m drill --timeout 590 $(DRILLS_$*)

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
