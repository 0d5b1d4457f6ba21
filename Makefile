# Three commands matter: `make demo`, `make quick` while working, `make test` before a change is done. Each makes its own
# environment first.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# two test processes share two cores: more threads would only wait for each other
export OPENBLAS_NUM_THREADS = 1

.PHONY: demo quick test lint types pyright imports unit cover door clean

demo: $(VENV)/.user
	$(BIN)/python -m dptally.cli.demo

test: lint types imports unit

# what a contributor runs after every change: about a minute on two cores. The families left out are in tests/conftest.py
quick: $(VENV)/.dev
	$(BIN)/ruff check --quiet src tests tools benchmarks papers
	DPTALLY_QUICK=1 $(BIN)/pytest -n 2 --dist worksteal -m "not slow" tests

lint: $(VENV)/.dev
	$(BIN)/ruff check src tests tools benchmarks papers
	$(BIN)/ruff format --check src tests tools benchmarks papers docs examples
	$(BIN)/python tools/door.py --check
types: $(VENV)/.dev
	$(BIN)/mypy
# the other checker: two minutes and 2 GB, so it is asked apart; what users see of the types is in `make unit` for both
pyright: $(VENV)/.dev
	$(BIN)/pyright --pythonpath $(BIN)/python $(PYRIGHT)
imports: $(VENV)/.dev
	$(BIN)/lint-imports --no-cache
unit: $(VENV)/.dev
	$(BIN)/pytest -n 2 --dist worksteal
# how much of src the tests reach, at least 95 % of lines and branches: a tracer makes them half as slow again, so it is
# asked apart, and whether they pass is the question of `make unit`
cover: $(VENV)/.dev
	-$(BIN)/pytest -n 2 --dist worksteal -m "not depth" --cov --cov-report=
	$(BIN)/coverage report --skip-covered --fail-under=95

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.user: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet -e '.[all]'
	touch $@
$(VENV)/.dev: requirements-dev.txt $(VENV)/.user
	$(BIN)/pip install --quiet -r requirements-dev.txt
	touch $@

# the oldest versions that pyproject.toml allows of everything it names: a fast part of the suite
.PHONY: lowest
LOWEST := build/lowest
lowest:
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/pip install --quiet uv
	$(LOWEST)/bin/uv pip compile --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --all-extras pyproject.toml -o $(LOWEST)/lowest.txt
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python -r $(LOWEST)/lowest.txt pytest pytest-xdist hypothesis mpmath httpx pandas polars pyarrow
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --no-deps -e .
	DPTALLY_QUICK=1 $(LOWEST)/bin/python -m pytest -q -n 2 -W default -m "not slow" $(LOW_TESTS) # old libraries warn of one another
LOW_TESTS := tests/numerics tests/mechanisms tests/answers tests/report tests/tables/test_tables_session.py \
	tests/tables/test_tables_sources.py tests/ledger/test_ledger_account.py tests/ledger/test_ledger_trust.py \
	tests/web/test_web_pages.py tests/cli/test_cli_commands.py

# after a mechanism or a public name was added: the lazy table, the typed door, the table of the manual
door: $(VENV)/.dev
	$(BIN)/python tools/door.py
	$(BIN)/ruff format --quiet src/dptally/mechanisms/table.py

clean:
	rm -f src/dptally/_kernel*.so
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage build dist

# the compiled kernel beside the sources, where a C compiler is: docs/kernel.md. Without it everything works, slower.
# `make kernel-wheel` makes a wheel of this platform in dist/ that has it inside
.PHONY: kernel kernel-wheel bench-kernel
kernel: $(VENV)/.user
	$(BIN)/python kernel/build.py
kernel-wheel: | $(VENV)/bin/python
	DPTALLY_BUILD_KERNEL=1 $(BIN)/pip wheel --quiet --no-deps --wheel-dir dist .
bench-kernel: kernel
	$(BIN)/python benchmarks/bench_kernel.py
# dptally beside its peers: benchmarks/RESULTS.md. Each tool gets its own environment under .venv-bench.
.PHONY: bench bench-start soak
bench: .venv-bench/dptally/.ready
	.venv-bench/dptally/bin/python benchmarks/bench.py $(BENCH)
.venv-bench/dptally/.ready: benchmarks/requirements-dptally.txt pyproject.toml
	$(PYTHON) -m venv .venv-bench/dptally
	.venv-bench/dptally/bin/pip install --quiet -e . -r benchmarks/requirements-dptally.txt
	touch $@

# random plans over everything: how fast, how tight: benchmarks/SWEEP.md. `make bench-sweep SWEEP='--plans 200 --seed 7'`
.PHONY: bench-sweep
bench-sweep: $(VENV)/.dev
	$(BIN)/python benchmarks/sweep.py $(SWEEP)

# the command line from its start to its answer, beside a bare import of numpy: benchmarks/START.md
bench-start:
	$(PYTHON) benchmarks/bench_start.py $(BENCH)

# other tools' own accountant tests against the drop-ins, and a real training run: docs/interop.md
.PHONY: interop
TOOLS := .venv-interop
PAGES := tests/interop/test_migration_pages.py
QUIETLY := -m pytest -q -W ignore -p no:cacheprovider
interop: $(TOOLS)/opacus/.ready $(TOOLS)/dp-accounting/.ready $(TOOLS)/jax-privacy/.ready $(TOOLS)/others/.ready
	$(TOOLS)/dp-accounting/bin/python benchmarks/interop/suites.py dp_accounting
	$(TOOLS)/jax-privacy/bin/python -W ignore benchmarks/interop/suites.py jax_privacy
	$(TOOLS)/jax-privacy/bin/python $(QUIETLY) tests/interop/test_jax_privacy.py $(PAGES)
	$(TOOLS)/opacus/bin/python -W ignore benchmarks/interop/suites.py opacus
	$(TOOLS)/opacus/bin/python -W ignore benchmarks/interop/opacus_training.py
	$(TOOLS)/opacus/bin/python $(QUIETLY) tests/interop/test_opacus.py tests/interop/test_interop_training.py tests/interop/test_loaders.py $(PAGES)
	$(TOOLS)/others/bin/python $(QUIETLY) tests/interop/test_other_tools.py tests/release/test_release_search.py $(PAGES)
$(TOOLS)/opacus/.ready: pyproject.toml
	$(PYTHON) -m venv $(TOOLS)/opacus
	-$(TOOLS)/opacus/bin/pip install --quiet --no-index --no-deps 'torch>=2.6' # a wheel at hand (PIP_FIND_LINKS) goes first
	$(TOOLS)/opacus/bin/pip install --quiet 'torch>=2.6' # the index's own brings CUDA packages
	$(TOOLS)/opacus/bin/pip install --quiet -e '.[cli,reports]' 'opacus>=1.6' pytorch-lightning transformers accelerate hypothesis pytest
	touch $@
$(TOOLS)/dp-accounting/.ready: pyproject.toml
	$(PYTHON) -m venv $(TOOLS)/dp-accounting
	$(TOOLS)/dp-accounting/bin/pip install --quiet -e . 'dp-accounting>=0.6'
	touch $@
$(TOOLS)/jax-privacy/.ready: pyproject.toml
	$(PYTHON) -m venv $(TOOLS)/jax-privacy
	$(TOOLS)/jax-privacy/bin/pip install --quiet -e . 'jax-privacy>=2.0' hypothesis pytest
	touch $@
$(TOOLS)/others/.ready: pyproject.toml
	$(PYTHON) -m venv $(TOOLS)/others
	$(TOOLS)/others/bin/pip install --quiet -e '.[cli,reports]' pipeline-dp opendp 'flwr>=1.41' optuna hypothesis pytest
	touch $@

# random plans against independent truths: `make soak SOAK='--plans 1000 --seed 7'`
soak: $(VENV)/.dev
	$(BIN)/python benchmarks/soak.py $(SOAK)
	$(BIN)/python benchmarks/soak_exact.py --resume
	DPTALLY_SOAK=1 $(BIN)/pytest -n 0 -q tests/ledger tests/kernel

# the founding papers reproduced: build/papers/index.html
.PHONY: papers docs
papers: $(VENV)/.user
	$(BIN)/python papers/gallery.py

# the manual: site/index.html, with the gallery of the papers beside it
docs: $(VENV)-docs/.ready $(VENV)/.user papers
	$(BIN)/python docs/reference.py
	NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs build --quiet --strict
	cp build/papers/index.html site/papers.html
$(VENV)-docs/.ready: requirements-docs.txt
	$(PYTHON) -m venv $(VENV)-docs
	$(VENV)-docs/bin/pip install --quiet -r requirements-docs.txt
	touch $@

# source package and wheel in dist/, and the wheel's first answers in an environment that has nothing else
.PHONY: package
package:
	rm -rf dist build/empty
	$(PYTHON) -m venv build/builder
	build/builder/bin/pip install --quiet build
	build/builder/bin/python -m build --outdir dist . > build/package.log
	$(PYTHON) -m venv build/empty
	build/empty/bin/pip install --quiet dist/dptally-*.whl
	cd build/empty && bin/dptally epsilon "1000 * poisson(gaussian(1.0), 0.01)" --delta 1e-5 --brief
	cd build/empty && bin/dptally check "epsilon 1.83 at delta 1e-5: DP-SGD noise 1, rate 0.01, 1000 steps" --brief
