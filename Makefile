# memcap: two commands do everything on a fresh Linux machine with Python 3.11+ and make:
#   make demo   set up an isolated environment and run the main job on real data
#   make test   set up and run all tests
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= 2

.PHONY: demo test test-slow lint format docs bench setup clean

setup: $(VENV)/.ready

$(VENV)/.ready: requirements/cpu.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements/cpu.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

demo: setup
	$(BIN)/python examples/manual_text.py build/manual.txt
	$(BIN)/memcap build build/manual.txt --window 16 --on-conflict drop --out build/manual.memory --force
	$(BIN)/memcap check build/manual.memory build/manual.txt

test: setup
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not slow"

test-slow: setup
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: setup
	$(BIN)/mkdocs build --strict --site-dir build/site

bench: setup
	$(BIN)/python -m benchmarks

clean:
	rm -rf build .mypy_cache .ruff_cache .pytest_cache
