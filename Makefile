# Everything runs in .venv, made on first use and again when pyproject.toml changes.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: help install demo test check lint quick bench clean

help:
	@echo 'make demo     set up, then simulate 100 brokers under FBR, D-DBR and MERC, side by side'
	@echo 'make test     set up, then run all tests'
	@echo 'make check    ruff, mypy and the quick tests'
	@echo 'make bench    the measurements behind the tables in the README'
	@echo 'make install  only set up: .venv with everything for development'
	@echo 'make clean    remove .venv and whatever was built'

install: $(INSTALLED)

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "mercast needs Python 3.11 or newer, and $(PYTHON) is not:"; \
	  echo "  Debian, Ubuntu: apt-get install python3 python3-venv"; \
	  echo "  then: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { \
	  echo "this Python has no venv module; Debian, Ubuntu: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(INSTALLED)
	$(BIN)/mercast simulate gtitm-100

test: $(INSTALLED)
	$(BIN)/pytest

check: lint quick

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

quick: $(INSTALLED)
	$(BIN)/pytest -m 'not slow'

bench: $(INSTALLED)
	$(BIN)/mercast match bench -i pst-bloom -i pst-hash -i be-tree --scaling 5000,10000,20000
	$(BIN)/mercast match bench -i pst-bloom -i op-index --dimensions 10000 --scaling 5000,10000,20000
	$(BIN)/mercast match bench -i a-tree --workload abe-gen --subscriptions 5000
	$(BIN)/mercast match bench -i be-tree -i pst-bloom --workload shifting --subscriptions 5000

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
