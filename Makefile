# Two commands matter: `make demo` and `make test`. Each makes its own environment first.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo test lint types imports unit clean

demo: $(VENV)/.user
	$(BIN)/python -m dptally.cli.demo

test: lint types imports unit

lint: $(VENV)/.dev
	$(BIN)/ruff check src tests benchmarks papers
types: $(VENV)/.dev
	$(BIN)/mypy
imports: $(VENV)/.dev
	$(BIN)/lint-imports --no-cache
unit: $(VENV)/.dev
	$(BIN)/pytest -n 2 --dist worksteal --cov --cov-report=term:skip-covered --cov-fail-under=95

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.user: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet -e '.[all]'
	touch $@
$(VENV)/.dev: requirements-dev.txt $(VENV)/.user
	$(BIN)/pip install --quiet -r requirements-dev.txt
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage build dist
