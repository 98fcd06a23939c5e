# Two commands on a fresh machine (Python >= 3.11, git, make): `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo reproduce test test-gpu lint docs figures changelog package clean

demo: $(VENV)/.demo-ready
	$(BIN)/frpcag demo

# The paper, cell by cell, where FRPCAG_DATA names the data sets; ARGS="times" runs one part, ARGS=--smoke a small version.
reproduce: $(VENV)/.reproduce-ready
	$(BIN)/python -m reproduction $(ARGS)

# Neighbours stay in one process, which makes their shared fixtures once; idle processes take work over.
test: $(VENV)/.test-ready
	$(BIN)/python -m pytest -n auto --dist worksteal

test-gpu: $(VENV)/.test-ready $(VENV)/.gpu-ready
	$(BIN)/python -m pytest tests/engines/test_gpu.py tests/backends tests/graphs/test_torch_neighbors.py

docs: $(VENV)/.docs-ready
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo docs/_build/html/index.html

# Every figure of README and docs beside the record it comes from; fails where they differ.
figures: $(VENV)/.demo-ready
	$(BIN)/python docs/check_figures.py

# Moves the lines of changes/ into CHANGELOG.md, under the version of the package.
changelog:
	$(PYTHON) docs/gather_changes.py

lint: $(VENV)/.lint-ready
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

# Builds wheel and sdist, and tries the wheel in an empty environment; EXTRAS="io dask" tries these as well.
package: $(VENV)/.package-ready
	rm -rf dist build/package
	$(BIN)/python -m build --outdir dist .
	$(PYTHON) -m venv build/package
	build/package/bin/python -m pip install --quiet dist/*.whl
	build/package/bin/python tests/check_package.py .
	for extra in $(EXTRAS); do \
	  build/package/bin/python -m pip install --quiet "$$(ls dist/*.whl)[$$extra]" && \
	  build/package/bin/python tests/check_package.py . $$extra || exit 1; \
	done

$(VENV)/.demo-ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -e .
	touch $@

$(VENV)/.%-ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -e '.[$*]'
	touch $@

clean:
	rm -rf $(VENV) dist build docs/_build docs/auto_examples docs/generated .pytest_cache .hypothesis .ruff_cache .mypy_cache
