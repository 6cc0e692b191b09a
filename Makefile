# Two commands do all the set-up: `make demo` runs the main job, `make test` the tests.
VENV ?= .venv
PYTHON ?= python3
BIN = $(VENV)/bin
# Python compiles what it imports; pip would compile all of it, most of which nobody ever imports, for half a minute.
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
# Tests start hundreds of processes: none of them should compile what another one has compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-quick test-avx2 check docs bench zoo format clean

demo: $(VENV)/.ready
	$(BIN)/league train configs/connect_four.yaml

test: $(VENV)/.ready-dev
	$(BIN)/python -m pytest -n 3 --dist loadgroup

# Without Ray, servers, browsers and whole runs: for `make test-quick PYTHON=python3.12 VENV=.venv-3.12`.
test-quick: $(VENV)/.ready-dev
	$(BIN)/python -m pytest -n 2 --dist loadgroup tests/envs tests/agents/losses tests/agents/unroll tests/agents/nets \
	  tests/league/core tests/league/config tests/league/store

# The numerical tests on the instructions of an ordinary processor: most laptops have no AVX-512. In one process, as
# `.ci/run` has them beside all tests; those of processes, waits and imports are no other there.
test-avx2: $(VENV)/.ready-dev
	ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2 MKL_ENABLE_INSTRUCTIONS=AVX2 $(BIN)/python -m pytest \
	  tests/agents tests/docs/test_examples.py --ignore tests/agents/learner/workers --ignore tests/agents/replay \
	  --ignore tests/agents/acting/search --deselect tests/docs/test_examples.py::test_the_game_keeps_the_contract \
	  -k "not no_step_waits and not torch_and_numpy_alone and not none_needs_torch and not one_line_in_the_table"

check: $(VENV)/.ready-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: $(VENV)/.ready-dev
	$(BIN)/python docs/generate.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

bench: $(VENV)/.ready-dev
	$(BIN)/python -m benchmarks.throughput --env connect_four --json
	$(BIN)/python -m benchmarks.throughput --env pettingzoo:classic/connect_four_v3 --json
	$(BIN)/python -m benchmarks.throughput --env gymnasium:CartPole-v1 --json
	$(BIN)/python -m benchmarks.strength --game connect_four --json

# The trained policies that `zoo:NAME` plays, in league/config/zoo: hours of one core; it continues where it was stopped.
zoo: $(VENV)/.ready-dev
	$(BIN)/python -m benchmarks.strength.zoo

format: $(VENV)/.ready-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The constraints pin a CPU build of torch; without them gigabytes of CUDA packages come along.
$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) -e .
	touch $@

$(VENV)/.ready-dev: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) -e '.[dev]'
	touch $(VENV)/.ready $@

clean:
	rm -rf $(VENV) site .pytest_cache .mypy_cache .ruff_cache .hypothesis
