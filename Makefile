# Two commands on a fresh machine (Python >= 3.11, git, make): `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-gpu lint clean

demo: $(VENV)/.demo-ready
	$(BIN)/frpcag demo

test: $(VENV)/.test-ready
	$(BIN)/python -m pytest -n auto

test-gpu: $(VENV)/.test-ready $(VENV)/.gpu-ready
	$(BIN)/python -m pytest tests/test_gpu.py tests/backends tests/graphs/test_torch_neighbors.py

lint: $(VENV)/.lint-ready
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

$(VENV)/.demo-ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -e .
	touch $@

$(VENV)/.%-ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -e '.[$*]'
	touch $@

clean:
	rm -rf $(VENV) dist build .pytest_cache .hypothesis .ruff_cache .mypy_cache
