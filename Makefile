# The one door. `make help` says what there is.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

PYTHON ?= python3
ROOTS := db operator pipeline reconcilers
VENV := .venv
BIN := $(VENV)/bin
# Found wheels of a machine's own must not decide what is installed.
UV := env -u PIP_FIND_LINKS -u UV_FIND_LINKS .uv/bin/uv
# An API server for the tests, built once and kept; fails where that cannot be.
BED = env PYTHONPATH=tests $(BIN)/python -m cluster.bed.building
# `always`: where there is none, the tests fail.
CLUSTER ?=
# Not empty where tests on it are among those that ARGS asks for.
ON_CLUSTER = $(if $(findstring tests/,$(ARGS)),$(findstring tests/cluster,$(ARGS)),all)
ARGS ?=
WORKERS ?= 2

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(VENV)/.dev ## the environment in .venv, from hashed requirements

.PHONY: demo
demo: $(VENV)/.demo ## everything on this machine: make demo ARGS="--help"
	@tools/system-packages demo
	@$(BIN)/baton demo $(ARGS)

.PHONY: test
test: $(VENV)/.dev ## the tests: make test ARGS="tests/unit/outbox -k relay"
	@tools/system-packages test
	@marks="not check and not chaos and not bench and not chart and not e2e"; \
	 if [ -z "$(ON_CLUSTER)" ]; then \
	   marks+=" and not cluster"; \
	 elif ! $(BED); then \
	   if [ "$${CI:-}" = true ] || [ "$(CLUSTER)" = always ]; then exit 1; fi; \
	   marks+=" and not cluster"; \
	   trap 'echo "left out: every test on a Kubernetes API server, for want of one" >&2' EXIT; \
	 fi; \
	 $(BIN)/pytest -n $(WORKERS) --dist worksteal -m "$$marks" $(ARGS)

.PHONY: chaos
chaos: $(VENV)/.dev ## kills real parts while work goes on
	@tools/system-packages test
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal -m chaos --timeout 900 --durations 10 $(ARGS)

.PHONY: cluster
cluster: $(VENV)/.dev ## the operator on a real API server, built by Go at the first time: make cluster ARGS="--kubeconfig FILE"
	@$(if $(findstring --kubeconfig,$(ARGS)),,$(BED))
	@$(BIN)/pytest -m "cluster and not chaos" tests/cluster $(ARGS)

.PHONY: chart
chart: $(VENV)/.dev ## the chart and the alerts, by helm (built by Go at the first time), promtool and the schemas of Kubernetes
	@tools/system-packages chart
	@PYTHONPATH=tests $(BIN)/python -m support.charts.helm
	@$(BIN)/pytest -q -m chart tests/chart $(ARGS)

.PHONY: image
image: $(VENV)/.dev ## the image of all workloads, built by buildah on a base that is made here, and every way to start it
	@tools/system-packages image
	@PYTHONPATH=tests $(BIN)/python -m e2e.bed.images
	@$(BIN)/pytest -q -m e2e tests/e2e/test_image.py $(ARGS)

.PHONY: e2e
e2e: $(VENV)/.dev ## the image on a real node, as root: installed, used, harmed, upgraded; its programs are built by Go at the first time
	@tools/system-packages e2e
	@PYTHONPATH=tests $(BIN)/python -m support.charts.helm
	@PYTHONPATH=tests $(BIN)/python -m e2e.bed.programs
	@$(BIN)/pytest -m e2e --timeout 1200 --durations 10 tests/e2e $(ARGS)

.PHONY: bench
bench: $(VENV)/.bench ## measures, alone on the machine: make bench ARGS="--bench-scale 0.1"; figures in build/bench.json
	@tools/system-packages test
	@$(BIN)/pytest -m bench -s --timeout 1800 tests/bench $(ARGS)

.PHONY: bench-page
bench-page: $(VENV)/.dev ## lay out the figures of the last make bench in docs/benchmarks.md
	@PYTHONPATH=tests $(BIN)/python -m support.figures docs/benchmarks.md

.PHONY: check
check: $(VENV)/.dev ## exactly what CI checks: format, lint, types, layers, dead code, documents
	@$(BIN)/ruff format --check --output-format concise .
	@$(BIN)/ruff check --output-format concise .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/vulture
	@tools/system-packages check
	@$(BIN)/pytest -q -m check

.PHONY: format
format: $(VENV)/.dev ## lay out the code and mend what can be mended by itself
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

.PHONY: generated
generated: $(VENV)/.dev ## write what is generated of the chart: copies, schema, dashboard, tables of values and alerts
	@PYTHONPATH=tests $(BIN)/python -m support.charts.generate

.PHONY: pictures
pictures: $(VENV)/.dev ## draw again what the documents show of the demo
	@tools/system-packages demo
	@PYTHONPATH=tests $(BIN)/python -m support.pictures docs/pictures

.PHONY: requirements
requirements: .uv/.made ## pin again what requirements/*.in ask for
	@compile() { \
	   echo "requirements/$$1.txt"; \
	   $(UV) pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	     --no-emit-index-url --no-emit-find-links --custom-compile-command "make requirements" \
	     requirements/$$1.in -o requirements/$$1.txt $${2:+-c requirements/$$2.txt}; }; \
	 compile demo; compile run demo; compile build demo; compile operator demo; compile dev demo; compile bench dev; compile uv dev

.PHONY: clean
clean: ## remove what the targets above made
	@rm -rf $(VENV) .uv build dist htmlcov .coverage .coverage.* .mypy_cache .ruff_cache \
	  .pytest_cache .hypothesis .import_linter_cache .grimp_cache
	@find $(ROOTS) tests tools -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment. Each stamp is younger than the requirements that it was made from. A larger
# set holds the smaller ones, and touches their stamps.

.uv/.made: requirements/uv.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Baton needs Python 3.11 or newer; say which with make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -m venv --clear .uv \
	  || { echo "python3 -m venv does not work here (Debian: apt-get install python3-venv)" >&2; exit 1; }
	@env -u PIP_FIND_LINKS .uv/bin/python -m pip install --quiet --disable-pip-version-check \
	  --require-hashes -r requirements/uv.txt
	@touch $@

$(VENV)/.made: .uv/.made
	@$(UV) venv --quiet --clear --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" $(VENV)
	@touch $@

$(VENV)/.demo: $(VENV)/.made requirements/demo.txt pyproject.toml
	@echo "installing what the demo needs" >&2
	@$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements/demo.txt
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.made requirements/dev.txt pyproject.toml
	@echo "installing what development needs" >&2
	@$(UV) pip sync --quiet --python $(BIN)/python --require-hashes requirements/dev.txt
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $(VENV)/.demo $@

$(VENV)/.bench: $(VENV)/.dev requirements/bench.txt
	@echo "installing what the benchmarks compare with" >&2
	@$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements/bench.txt
	@touch $@
