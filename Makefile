# webfountain. Needs Python >= 3.11, pip and make.
#
#   make crawl                                    run the demonstration: a generated web on loopback, about a minute
#   make crawl COLLECTION=policies/mine.toml      crawl your own collection (ARGS="--max-pages 1000" adds options)
#   make test | lint | soak | bench               all checks | style and types | long tests | benchmarks
#   make test-system                              tests that need Debian packages (installed as root)

PYTHON ?= python3
COLLECTION ?=
ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install
PYTEST := $(BIN)/python -m pytest

.DELETE_ON_ERROR:
.PHONY: crawl test test-system lint soak bench clean

crawl: $(VENV)/.run
ifeq ($(strip $(COLLECTION)),)
	@$(BIN)/webfountain demo --serve $(ARGS)
else
	@$(BIN)/webfountain crawl $(COLLECTION) --serve $(ARGS)
endif

# Coverage has a limit per room, so a well-covered store cannot hide an untested frontier. Three workers on two cores,
# because many tests wait for processes and servers.
test: $(VENV)/.test lint
	@$(BIN)/coverage erase
	@$(PYTEST) -n 3 --dist worksteal --cov --cov-report=
	@for room in core frontier store; do \
	    echo "branch coverage of webfountain/$$room (at least 90 %):"; \
	    $(BIN)/coverage report --include="webfountain/$$room/*" --fail-under=90 || exit 1; \
	done

# Tests that need Debian packages. Root installs them; another user sees which ones are missing.
test-system: $(VENV)/.test
	@sh tests/browser-packages.sh $(VENV)
	@sh tests/system-packages.sh && $(PYTEST) -m system || [ $$? -eq 77 ]

lint: $(VENV)/.test
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(PYTEST) tests/test_floors.py

soak: $(VENV)/.test
	@$(PYTEST) -m soak --durations=0

# Every benchmark runs, even if another one misses its goal. ARGS=--full: with the options of the acceptance figures.
bench: $(VENV)/.bench
	@$(BIN)/python -m tests.benchmarks $(ARGS)

clean:
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .coverage*

# Debian's python3 may lack ensurepip (package python3-venv); then its own pip installs pip into the folder.
$(VENV)/.made:
	@echo "webfountain: making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "webfountain: needs Python 3.11 or newer (make PYTHON=python3.11)"; exit 1; }
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || { \
	    $(PYTHON) -m venv --clear --without-pip $(VENV) && \
	    $(PYTHON) -m pip --disable-pip-version-check --quiet --python $(BIN)/python install pip; }
	@touch $@

$(VENV)/.run: $(VENV)/.made pyproject.toml
	@echo "webfountain: installing what a crawl needs from PyPI (the first time; about 580 MB on disk)"
	@$(PIP) -e .
	@touch $@

$(VENV)/.test: $(VENV)/.made pyproject.toml
	@echo "webfountain: installing what the tests need"
	@$(PIP) -e '.[test]'
	@touch $@ $(VENV)/.run

$(VENV)/.bench: $(VENV)/.test pyproject.toml
	@echo "webfountain: installing what the benchmarks compare with"
	@$(PIP) -e '.[benchmark]'
	@touch $@
