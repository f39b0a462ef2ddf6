# Everything runs in $(VENV), made on first use and again when pyproject.toml or a C++ source changes.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
NATIVE := $(shell find matching/native/src -name '*.cpp' -o -name '*.hpp')

# As many test files at a time as there are cores, but not more than four: each may start Spark and several brokers.
TESTS := $(BIN)/pytest --numprocesses auto --maxprocesses 4 --dist loadfile

# The native core without its bindings, with its own tests, under AddressSanitizer and UndefinedBehaviorSanitizer.
UNIT := build/sanitize/native_unit
SOAK := build/sanitize/native_soak
UNIT_TESTS := $(wildcard matching/native/src/tests/unit_*.cpp)
SOAK_TESTS := $(filter-out $(UNIT_TESTS),$(wildcard matching/native/src/tests/*.cpp))
CORE := $(filter-out matching/native/src/python/% matching/native/src/tests/%,$(filter %.cpp,$(NATIVE)))
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

.PHONY: help install demo test check lint docs quick bench sanitize clean

help:
	@echo 'make demo     set up, then simulate 100 brokers under FBR, D-DBR and MERC, and analyse the traces with Spark'
	@echo 'make test     set up, then run all tests'
	@echo 'make check    ruff, mypy, the documentation and the quick tests'
	@echo 'make docs     the documentation site with the API reference, in build/site'
	@echo 'make bench    matching indexes compared, as in the README with other sizes'
	@echo 'make sanitize the native core under sanitizers: unit tests, a million operations beside a scan, mutated publications'
	@echo 'make install  only set up: .venv with everything for development'
	@echo 'make clean    remove .venv and whatever was built'

install: $(INSTALLED)

$(INSTALLED): pyproject.toml CMakeLists.txt $(NATIVE)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "mercast needs Python 3.11 or newer, and $(PYTHON) is not:"; \
	  echo "  Debian, Ubuntu: apt-get install python3 python3-venv"; \
	  echo "  then: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { \
	  echo "this Python has no venv module; Debian, Ubuntu: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@$(BIN)/python -c 'import matching._native' 2>/dev/null || { \
	  echo "no native core: it did not compile here, and matching runs in pure Python, many times slower."; \
	  echo "  Debian, Ubuntu: apt-get install g++ python3-dev"; \
	  echo "  then: touch CMakeLists.txt && make install"; }
	@touch $@

demo: $(INSTALLED)
	$(BIN)/mercast demo

test: $(INSTALLED)
	$(TESTS)

check: lint docs quick

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(INSTALLED)
	$(BIN)/python docs/site/build.py

quick: $(INSTALLED)
	$(TESTS) -m 'not slow'

bench: $(INSTALLED)
	$(BIN)/mercast match bench -i pst-bloom -i pst-hash -i be-tree --scaling 5000,10000,20000
	$(BIN)/mercast match bench -i pst-bloom -i op-index --dimensions 10000 --scaling 5000,10000,20000
	$(BIN)/mercast match bench -i a-tree --workload abe-gen --subscriptions 5000
	$(BIN)/mercast match bench -i be-tree -i pst-bloom --workload shifting --subscriptions 5000

sanitize: $(UNIT) $(SOAK)
	$(UNIT)
	$(SOAK)

$(UNIT): $(patsubst %.cpp,build/sanitize/%.o,$(UNIT_TESTS) $(CORE))
$(SOAK): $(patsubst %.cpp,build/sanitize/%.o,$(SOAK_TESTS) $(CORE))
$(UNIT) $(SOAK):
	$(CXX) $(SANITIZE) -o $@ $^ -pthread

build/sanitize/%.o: %.cpp $(filter %.hpp,$(NATIVE))
	@mkdir -p $(@D)
	$(CXX) -std=c++20 -Imatching/native/src -O1 -g1 -Wall -Wextra $(SANITIZE) -c -o $@ $<

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
