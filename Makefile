# Needs Python 3.11 or later with venv and pip; everything else goes into .venv.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-stamp
N ?= 10000
SEED ?= 1
NAME ?=
ARGS ?=

.PHONY: help setup test test-fast lint format bench fuzz demo docs clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## Make .venv with the `sluicegate` command and the tools for development, and the web console
	@scripts/build_console.sh
	@scripts/kafka.sh connectors || true

# The stamp keeps a second `make setup` from doing anything; the lock file decides every version.
$(STAMP): pyproject.toml uv.lock scripts/setup.sh scripts/check_python.py
	@scripts/setup.sh "$(PYTHON)"
	@touch $@

test: setup ## Run every test
	@scripts/kafka.sh broker install || true
	@$(BIN)/pytest -n auto -m "not spark" $(ARGS)
	@$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder -m spark $(ARGS)

test-fast: setup ## Run the tests that take no more than a minute together, without Spark
	@$(BIN)/pytest -n auto -m "not slow and not spark" $(addprefix --ignore=tests/,architecture console differential property security service spark) $(ARGS)

lint: setup ## Check style, formatting and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: setup ## Format the code and put imports in order
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: setup ## Measure (`make bench NAME=rewrite` for one)
	@$(BIN)/sluicegate bench $(NAME)

fuzz: setup ## Compare random cases with the reference model (`make fuzz N=100000 SEED=1`)
	@$(BIN)/python -m sluicegate.testing.fuzz --count $(N) --seed $(SEED)

demo: setup ## Serve a port with ships for four accounts (`sluicegate demo --explain` needs no Java)
	@$(BIN)/sluicegate demo

docs: setup ## Write the generated pages of docs/ anew
	@$(BIN)/python scripts/generate_docs.py

clean: ## Remove .venv and what the tools left behind
	@rm -rf $(VENV) console/node_modules src/sluicegate/service/static .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
