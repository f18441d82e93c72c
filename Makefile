# Servewatch's commands; `make` alone lists them. Everything runs from .venv, which is made when it is first needed.

.DEFAULT_GOAL := help
.PHONY: help setup up down demo test check generate drill bench tools fmt lint type clean

python := .venv/bin/python
ready := .venv/.ready
ready_dev := .venv/.ready-dev
pins := pyproject.toml constraints.txt running/setup.sh

FLEET ?= fleet.yml
TIME_SCALE ?= 1
DRILL ?= all
ARGS ?=

help: ## Print this help
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(ready_dev) ## Make .venv with everything, tests and checks too (PYTHON=python3.12 chooses another Python)

$(ready): $(pins)
	@running/setup.sh

$(ready_dev): $(pins)
	@running/setup.sh dev

up: $(ready) ## Run the product here until Ctrl-C (FLEET=fleet.yml, TIME_SCALE=1); its simulator too, if the fleet names it
	@$(python) -m running up --fleet "$(FLEET)" --time-scale "$(TIME_SCALE)"

down: $(ready) ## Stop a `make up` that runs elsewhere
	@$(python) -m running down

demo: $(ready) ## Break something and watch the page arrive and resolve
	@$(python) -m drills demo

test: $(ready_dev) ## Run all tests (ARGS="-k fleet" chooses)
	@running/equip.sh || true
	@$(python) -m running ensure
	@$(python) -m pytest $(ARGS)

check: $(ready_dev) ## Check generated files, rules, configurations and imports with every version of the tools found
	@$(python) -m running check

generate: $(ready) ## Write every generated file from fleet.yml
	@$(python) generate.py

drill: $(ready) ## Run the failure drills (DRILL=NAME for one)
	@$(python) -m drills run "$(DRILL)"

bench: ## List the benchmarks, one command each
	@for file in $(wildcard bench/[a-z]*.py bench/*/__main__.py); do \
		module=$$(echo "$${file%.py}" | sed 's#/__main__$$##; s#/#.#g'); \
		printf '  $(python) -m %-28s %s\n' "$$module" "$$(sed -n '1{s/^"""//;s/"""$$//;p;q}' "$$file")"; \
	done

tools: $(ready) ## Build Prometheus 3.16 and Alertmanager 0.35 into .tools/bin (needs Go; minutes the first time)
	@$(python) -m running build

fmt: $(ready_dev) ## Format the code
	@$(python) -m ruff check --fix --quiet . || true
	@$(python) -m ruff format .

lint: $(ready_dev) ## Lint the code
	@$(python) -m ruff check .
	@$(python) -m ruff format --check .

type: $(ready_dev) ## Check the types
	@$(python) -m mypy .

clean: ## Stop the product, remove its data, logs and caches; .venv and .tools stay
	@[ ! -x $(python) ] || $(python) -m running down
	rm -rf .run .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
