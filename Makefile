# Few targets: what a newcomer runs, and what CI runs.
VENV ?= .venv
PYTHON ?= python3
BIN = $(VENV)/bin

PRESTO = 0.287
PRESTO_HOME ?= $(VENV)/presto-server-$(PRESTO)
COPY = org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy

PIP = $(BIN)/python -m pip --disable-pip-version-check -q

# Empty where there is no Rust: then nothing of native/ is built, and everything else works all the same.
CARGO := $(shell command -v cargo 2>/dev/null)

.PHONY: help demo test native lint coverage docs manifests requirements presto presto-golden
.DEFAULT_GOAL = help

help:  ## this list
	@awk -F ':.*  ## ' '/^[a-z-]+:.*  ## / {printf "%-16s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.demo  ## count distinct aircraft in a month of flights, privately
	$(BIN)/python examples/flights/demo.py

test: $(VENV)/.test $(if $(CARGO),native) lint  ## everything CI runs; with the compiled kernel where cargo is
	$(BIN)/python -m pytest -n 3 --dist worksteal -q

native: $(VENV)/.native  ## build the compiled kernel and install it, which needs cargo

lint: $(VENV)/.test  ## style, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
ifneq ($(CARGO),)
	cd native && cargo fmt --check
	cd native && cargo clippy --release -q -- -D warnings
endif

coverage: $(VENV)/.test  ## which lines of the package the tests below tests/unit run
	$(BIN)/python -m pytest -n 3 --dist worksteal -q --cov --cov-report=term:skip-covered tests/unit

docs: $(VENV)/.test  ## write anew what is made from the code: reference, commands, licences, metrics, dashboards
	$(BIN)/python -m docs.make_api
	$(BIN)/python -m docs.make_cli
	$(BIN)/python -m docs.make_licences
	$(BIN)/python -m docs.make_metrics
	$(BIN)/python -m docs.make_dashboards

manifests: $(VENV)/.test  ## write deploy/kubernetes/ anew from the Helm chart, which needs helm
	$(BIN)/python -m deploy.kubernetes.make_manifests

requirements: $(VENV)/bin/python  ## pin the newest versions that fit pyproject.toml, with hashes
	$(PIP) install uv
	$(BIN)/python requirements/pin.py

presto: $(VENV)/.presto $(PRESTO_HOME)  ## docs/presto.md on a real Presto, which is a download of 2 GB
	PRESTO_HOME=$(PRESTO_HOME) $(BIN)/python -m pytest -q tests/integration/test_presto_server.py

presto-golden: $(VENV)/.presto $(PRESTO_HOME)  ## write anew what that Presto makes and counts
	PRESTO_HOME=$(PRESTO_HOME) $(BIN)/python tests/golden/make_presto_engine.py

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "sfm-stream needs Python 3.11 or newer: make PYTHON=python3.x")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml
	$(PIP) install -e '.[serve]'
	touch $@

$(VENV)/.test: $(VENV)/bin/python pyproject.toml requirements/test.txt
	$(PIP) install --require-hashes -r requirements/test.txt
	$(PIP) install --no-deps --no-build-isolation -e .
	touch $@

$(VENV)/.native: $(VENV)/.test requirements/native.txt native/Cargo.toml native/pyproject.toml $(wildcard native/src/*.rs)
	$(PIP) install --require-hashes -r requirements/native.txt
	rm -rf native/target/wheels
	$(BIN)/maturin build -q --release --manifest-path native/Cargo.toml --interpreter $(BIN)/python --out native/target/wheels
	$(PIP) install --no-deps --force-reinstall native/target/wheels/*.whl
	touch $@

$(VENV)/.presto: $(VENV)/.test
	$(PIP) install -e '.[presto]'
	touch $@

$(PRESTO_HOME):
	mvn -B -q $(COPY) -Dartifact=com.facebook.presto:presto-server:$(PRESTO):tar.gz -DoutputDirectory=$(VENV)
	mkdir -p $(VENV)/unpacked
	tar xzf $(VENV)/presto-server-$(PRESTO).tar.gz -C $(VENV)/unpacked
	mv $(VENV)/unpacked/presto-server-$(PRESTO) $@
	rm $(VENV)/presto-server-$(PRESTO).tar.gz
