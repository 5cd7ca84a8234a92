# make demo: an example. make test: run after every change. make test-slow: slow checks, run before merging.
# make reproduce: the paper's figures. Each target sets up .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/pytest -n 2

.PHONY: demo reproduce test test-slow test-all lint tests slow-tests jit-off slow-jit-off cpus least peers package docs fuzz clean

demo: $(VENV)/plain
	$(BIN)/partwise demo --force

# all figures of the paper, or some: FIGURES="figure4 figure5". QUICK=1: tiny data. DATA=, OUT=: folders
FIGURES :=
QUICK :=
DATA :=
OUT := results
reproduce: $(VENV)/bench
	$(BIN)/python -m experiments $(FIGURES) $(if $(filter-out 0,$(QUICK)),--quick) $(if $(DATA),--data "$(DATA)") --out "$(OUT)"

test: lint tests jit-off

# runs the docs, tiny benchmarks, clusters of processes, other CPUs and versions, damaged files and random fits, and most
# tests without the JIT
test-slow: FIRST := 0
test-slow: slow-tests slow-jit-off cpus fuzz package least peers

lint: $(VENV)/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

tests: $(VENV)/dev
	$(PYTEST) -m "not slow"

slow-tests: $(VENV)/dev
	$(PYTEST) --dist loadfile -m slow

# the kernels as plain Python: tests of the kernels (jit-off), and of the code that uses them (slow-jit-off)
KERNELS := projections sets grouped updates constrained_updates sparse_coding
KERNEL_USERS := sparsity statistics data tensor missing starts loop middle_factor chunked chunked_passes \
	chunked_estimator minibatch cp known_parts recipes rivals rivals_hostile estimators estimators_hostile transform
PLAIN := NUMBA_DISABLE_JIT=1 $(PYTEST) -m "not slow and not compiled"
jit-off: $(VENV)/dev
	$(PLAIN) $(KERNELS:%=tests/test_%.py)

slow-jit-off: $(VENV)/dev
	$(PLAIN) $(KERNEL_USERS:%=tests/test_%.py)

# the reproducibility tests with the BLAS and the kernels of other CPUs, which have their own kernel cache
cpus: $(VENV)/dev
	NUMBA_CACHE_DIR=$(abspath $(VENV))/numba-cpus $(BIN)/python tests/cpus.py -n 2

# damaged files and random fits, for so many seconds. FOUND=: folder for what fails
# (default: a temporary folder). FIRST=: the first seed (default: at random)
SECONDS := 60
FOUND :=
FIRST :=
fuzz: $(VENV)/dev
	$(BIN)/python tests/fuzz.py --seconds $(SECONDS) $(if $(FOUND),--found "$(FOUND)") $(if $(FIRST),--first $(FIRST))

# regenerates docs/api.md, runs the code of every page, and builds the site (SITE=, a folder) with its gallery of examples.
# Nothing is downloaded; DATA= is a folder with real data for the examples
SITE := build/site
docs: $(VENV)/dev
	$(BIN)/python docs/make_api.py
	$(PYTEST) tests/test_docs.py
	$(if $(DATA),PARTWISE_DATA="$(abspath $(DATA))") $(BIN)/sphinx-build -W --keep-going docs "$(SITE)"
	$(BIN)/python docs/check_site.py "$(SITE)"

# builds the wheel and the source distribution, and runs a fit with the wheel in an empty environment elsewhere
package: $(VENV)/dev
	rm -rf dist $(VENV)-package
	$(BIN)/python -m build --outdir dist .
	$(PYTHON) -m venv $(VENV)-package
	$(VENV)-package/bin/python -m pip install --quiet dist/*.whl
	here=$$(mktemp -d) && cd $$here && $(abspath $(VENV))-package/bin/python $(abspath tests/package.py) && \
		$(abspath $(VENV))-package/bin/partwise --version && rm -r $$here

# the tests on every supported Python version found on this machine
test-all:
	@for version in 3.11 3.12 3.13 3.14; do \
		if python$$version -c "" 2>/dev/null; then \
			$(MAKE) tests PYTHON=python$$version VENV=.venv-$$version || exit 1; \
		else \
			echo "python$$version not found: skipped"; \
		fi; \
	done

# the oldest Python and the minimum versions in pyproject.toml; that matplotlib uses deprecated names of pyparsing
LEAST := estimators estimators_hostile transform imports projections sets sparsity rivals cp selection saved archive io \
	io_hostile known_files stored stored_hostile cluster cells brain sound plotting download
least:
	$(MAKE) .venv-least/least PYTHON=$(shell command -v python3.11 || echo $(PYTHON)) VENV=.venv-least
	.venv-least/bin/pytest -n 2 -m "not slow" -W ignore::pyparsing.warnings.PyparsingDeprecationWarning $(LEAST:%=tests/test_%.py)

$(VENV)/least: $(VENV)/made pyproject.toml tests/least.py
	$(BIN)/python tests/least.py > $(VENV)/least.txt
	$(BIN)/python -m pip install --quiet --constraint $(VENV)/least.txt --editable ".[test]"
	touch $@

# comparison with cNMF and starCAT, in an environment of its own; skipped where they cannot be installed
peers:
	@if timeout 400 $(MAKE) .venv-peers/peers VENV=.venv-peers; then \
		.venv-peers/bin/pytest -m slow tests/test_peers.py; \
	else \
		echo "cNMF cannot be installed here: tests/test_peers.py was skipped"; \
	fi

$(VENV)/peers: $(VENV)/made pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[peers]"
	touch $@

$(VENV)/made:
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || \
		{ echo "Partwise needs Python 3.11 or newer: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/plain: $(VENV)/made pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/bench: $(VENV)/made pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[bench]"
	touch $@

$(VENV)/dev: $(VENV)/made pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

clean:
	rm -rf .venv .venv-* .mypy_cache .pytest_cache .ruff_cache .hypothesis dist build docs/gallery docs/project docs/reference
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
