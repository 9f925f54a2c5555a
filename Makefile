# Everything a developer does. Each target sets up what it needs: a fresh clone with git, make, a C compiler,
# Python 3.11 or newer and stable Rust is enough.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
CARGO ?= cargo
PYTEST_FLAGS ?=
# One process a CPU; tests with a costly fixture in common share one.
PYTEST = $(BIN)/python -m pytest -rs -n logical --dist loadgroup $(PYTEST_FLAGS)

VENV := .venv
BIN := $(VENV)/bin
# Go, where it is: on the path, or where it installs itself.
GO := $(or $(shell command -v go),$(wildcard /usr/local/go/bin/go))
GO_MODULES := go/nicety tests/programs/goroutines
# Node, which only a change of the workbench page needs.
NPM := $(shell command -v npm)
NODE = $(shell sed -n 's/.*"node": "\(.*\)".*/\1/p' web/package.json)
# What the extension module is built from.
SOURCES := Cargo.toml Cargo.lock $(shell find crates specs handlers shim)

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

.PHONY: setup
setup: $(VENV)/.extension ## make .venv with nicety and everything that its development takes

.PHONY: check-tools
check-tools:
	@command -v $(PYTHON) >/dev/null || { echo "nicety needs Python 3.11 or newer, and there is no $(PYTHON);" \
	    "install it, or name yours: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "nicety needs Python 3.11 or newer," \
	    "and $(PYTHON) is $$($(PYTHON) -V 2>&1); name a newer one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make virtual environments;" \
	    "install its venv module (on Debian and Ubuntu: apt install python3-venv)" >&2; exit 1; }
	@command -v $(CARGO) >/dev/null || { echo "nicety needs stable Rust, and there is no cargo;" \
	    "install it from https://rustup.rs" >&2; exit 1; }
	@command -v cc >/dev/null || { echo "Rust needs a C compiler to link with, and there is no cc;" \
	    "install one (on Debian and Ubuntu: apt install gcc)" >&2; exit 1; }

$(VENV)/.tools: requirements.lock | check-tools
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	@touch $@

$(VENV)/.extension: $(VENV)/.tools pyproject.toml $(SOURCES)
	PATH="$(abspath $(BIN)):$$PATH" VIRTUAL_ENV="$(abspath $(VENV))" $(BIN)/maturin develop --profile tree --locked
	@touch $@

.PHONY: say-how-long
say-how-long:
	@[[ -e $(VENV)/.extension ]] || echo "setting nicety up in $(VENV) and target, once: some minutes on two CPUs" \
	    "and 2 GB of disk"

.PHONY: demo
demo: say-how-long setup ## ping-pong in four modes on two cards, and where the time goes
	@$(BIN)/nicety bench latency --nic spin-discrete,spin-integrated --mode rdma,portals4,spin-store,spin-stream \
	    --sizes 8:4Mi
	@echo
	@$(BIN)/nicety bench latency --nic spin-discrete,spin-integrated --mode rdma,portals4,spin-store,spin-stream \
	    --sizes 8,64Ki --breakdown

.PHONY: dist
dist: check-tools ## a source distribution and a wheel of this platform, built and tried, in dist
	PYTHON=$(PYTHON) .ci/wheel

.PHONY: docs
docs: setup ## the documentation's site, in target/docs/site
	$(BIN)/python docs/generate.py
	PYTHONPATH=docs $(BIN)/zensical build --strict --clean --config-file target/docs/mkdocs.yml
	@echo "open target/docs/site/index.html"

.PHONY: test
# The random ones with the same cases each time: what a change broke is told from what luck has found, for which there is soak.
test: setup ## all tests
	PROPTEST_RNG_SEED=$${PROPTEST_RNG_SEED:-1} $(CARGO) test --workspace --locked
	$(PYTEST)

.PHONY: bench
bench: setup ## measure nicety itself: events, instructions and handlers a second, calls from Python and of real programs, packets of traffic; other simulators and the build BEFORE beside it
	$(CARGO) bench --workspace --locked
	$(BIN)/python crates/py-ext/benches/calls.py
	$(BIN)/python crates/py-ext/benches/handlers.py
	$(BIN)/python crates/py-ext/benches/xdp.py
	$(BIN)/python crates/py-ext/benches/processes.py
	$(BIN)/python crates/py-ext/benches/simgrid.py
	$(BIN)/python crates/py-ext/benches/rows.py $(if $(BEFORE),--before $(BEFORE)) $(if $(PEERS),--peers $(PEERS))

.PHONY: bench-growth
bench-growth: setup ## the growth of CPU time with the amount of work; RESULTS=FILE.json names the file for bench-compare
	$(BIN)/python crates/py-ext/benches/growth.py $(if $(RESULTS),--json $(RESULTS))

OLD ?=
NEW ?=

.PHONY: bench-compare
bench-compare: $(VENV)/.tools ## compare two runs of make bench or bench-growth: make bench-compare OLD=COMMIT NEW=FILE.json
	@[[ -n "$(OLD)" && -n "$(NEW)" ]] || { echo "name two commits or files: make bench-compare OLD=1f0c2d3e4a5b NEW=b.json" >&2; exit 2; }
	$(BIN)/python crates/py-ext/benches/results.py $(OLD) $(NEW)

WORK ?=

.PHONY: profile
profile: setup ## a profile with call stacks of a workload, by perf: make profile WORK=exec-pingpong; without WORK the list of workloads
	$(BIN)/python crates/py-ext/benches/profiles.py $(WORK) $(if $(COUNT),--count $(COUNT))

.PHONY: soak
soak: setup ## the randomised tests, for long
	PROPTEST_CASES=$${PROPTEST_CASES:-10000} $(CARGO) test --workspace --locked
	HYPOTHESIS_PROFILE=soak $(PYTEST) -m "not gpu"

.PHONY: xdp-kernel
xdp-kernel: setup ## XDP programs beside the kernel, as root: random ones, those that it attaches to a veth pair, and the objects of a folder, on cards too: make xdp-kernel PROGRAMS=30000 OBJECTS=
	mkdir -p target/xdp
	for source in handlers/xdp/*.c; do \
	    $(BIN)/nicety cc --xdp $$source -o target/xdp/$$(basename $$source .c).o || exit 1; done
	PROPTEST_CASES=$(or $(PROGRAMS),1000) NICETY_XDP_OBJECTS=$(abspath $(or $(OBJECTS),target/xdp)) \
	    $(CARGO) test --locked --package nicety-ebpf --test all -- kernel --nocapture
	NICETY_XDP_OBJECTS=$(abspath $(or $(OBJECTS),target/xdp)) \
	    $(CARGO) test --locked --package nicety-xdp --test all -- objects --nocapture
	$(PYTEST) -m kernel tests/test_xdp_attached.py

SECONDS ?= 60

.PHONY: fuzz
fuzz: check-tools ## change files at random and read them: make fuzz SECONDS=60, for each of thirteen formats
	BOLERO_RANDOM_ITERATIONS=18446744073709551615 BOLERO_RANDOM_TEST_TIME_MS=$(SECONDS)000 \
	    $(CARGO) test --locked --package nicety-fuzz --test all

MUTANTS := target/tools/bin/cargo-mutants
FILE ?=
SAMPLE ?= 200
SEED ?= 1
TESTS ?=

$(MUTANTS):
	$(CARGO) install --quiet --root target/tools --locked --version 27.1.0 cargo-mutants

.PHONY: mutants
mutants: setup $(MUTANTS) ## see whether tests notice changes of the code: of FILE='a.rs b.rs', or of SAMPLE places by SEED
	$(BIN)/python tests/mutants.py --tool $(MUTANTS) --sample $(SAMPLE) --seed $(SEED) --tests='$(TESTS)' $(FILE)

.PHONY: lint
lint: $(VENV)/.tools ## formatting, clippy, ruff, mypy, go vet, the workbench page, words, and documentation without a warning
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS=-Dwarnings $(CARGO) doc --workspace --no-deps --locked
	$(BIN)/ruff check python tests examples docs/generate.py crates/py-ext
	$(BIN)/ruff format --check python tests examples docs/generate.py crates/py-ext
	$(BIN)/mypy
	$(BIN)/zizmor --offline --quiet .github
ifneq ($(GO),)
	for module in $(GO_MODULES); do (cd $$module && $(GO) vet ./...); done
	unformatted=$$($$(dirname $$(readlink -f $(GO)))/gofmt -l $(GO_MODULES)); [[ -z $$unformatted ]] || { \
	    echo "not formatted: $$unformatted; make format" >&2; exit 1; }
	# Debian 12's Go is too old for Vale.
	if $(MAKE) --no-print-directory $(VALE); then $(BIN)/python tests/prose.py $(VALE); \
	else echo "Vale cannot be built here: words are not checked" >&2; fi
else
	@echo "there is no Go toolchain (go): $(GO_MODULES) and words are not linted"
endif
ifneq ($(NPM),)
	$(MAKE) --no-print-directory web-check
else
	@echo "there is no Node (npm): web is not linted"
endif

# Vale checks words; its newest release as a Go module.
VALE := target/tools/bin/vale-3.21.0
FILES ?=

$(VALE):
	@[[ -n "$(GO)" ]] || { echo "make prose needs Go 1.25 or newer, which builds Vale" >&2; exit 1; }
	GOBIN=$(CURDIR)/target/tools/vale $(GO) install github.com/vale-cli/vale/v3/cmd/vale@v3.21.0
	mkdir -p $(@D) && mv target/tools/vale/vale $@

.PHONY: prose
prose: $(VENV)/.tools $(VALE) ## check the words of pages, comments and messages: make prose FILES=docs/guide
	$(BIN)/python tests/prose.py $(VALE) $(FILES)

WEB := python/nicety/serve/assets

web/node_modules/.installed: web/package.json web/package-lock.json
	@[[ -n "$(NPM)" ]] || { echo "the workbench page needs Node $(NODE) (on Debian and Ubuntu: apt install nodejs npm)" >&2; exit 1; }
	cd web && npm ci --silent --no-audit --no-fund
	@touch $@

.PHONY: web
web: web/node_modules/.installed ## build the workbench page into python/nicety/serve/assets, which is committed
	rm -rf $(WEB)
	cd web && npm run --silent build

.PHONY: web-check
web-check: web/node_modules/.installed ## check types and format of the workbench page, and that the committed files are its build
	cd web && npm run --silent check
	rm -rf target/web
	cd web && node build.mjs ../target/web
	diff -rq target/web $(WEB) || { echo "$(WEB) is not the build of web: make web, and commit it" >&2; exit 1; }

.PHONY: web-picture
web-picture: setup ## take the picture of the workbench page in the documentation, by Chromium
	NICETY_WRITE=1 $(PYTEST) -n 0 tests/test_workbench_page.py -k picture

DENY := target/tools/bin/cargo-deny

$(DENY):
	$(CARGO) install --quiet --root target/tools --locked --version 0.20.2 cargo-deny

.PHONY: deny
deny: $(DENY) ## licences, sources and versions of crates; and advisories, whose list is fetched: make deny CHECKS=advisories
	$(DENY) --locked check $(CHECKS)

CHECKS ?= licenses bans sources

SEMVER := target/tools/bin/cargo-semver-checks
BASE ?=

$(SEMVER):
	$(CARGO) install --quiet --root target/tools --locked --version 0.49.0 cargo-semver-checks

.PHONY: check-base
check-base:
	@[[ -n "$(BASE)" ]] || { echo "name the revision to compare with: make semver BASE=REV" >&2; exit 2; }

.PHONY: semver
semver: check-base $(SEMVER) ## see whether the crate nicety breaks its users since a revision: make semver BASE=v0.1.0
	PATH="$(abspath target/tools/bin):$$PATH" $(CARGO) semver-checks --package nicety --baseline-rev $(BASE)

# Crates for tests alone, examples, and the extension module, which is in wheels.
UNPUBLISHED = $(shell grep -rl '^publish = false' --include Cargo.toml crates examples | xargs sed -n 's/^name = "\(nicety-.*\)"/\1/p')

.PHONY: package
package: check-tools ## pack all published crates as a registry gets them, and build the packages, in target/package
	$(CARGO) package --workspace --locked $(addprefix --exclude ,$(UNPUBLISHED))

.PHONY: format
format: $(VENV)/.tools ## format Rust, Python, Go and the workbench page
	$(CARGO) fmt --all
	$(BIN)/ruff check --fix python tests examples docs/generate.py crates/py-ext
	$(BIN)/ruff format python tests examples docs/generate.py crates/py-ext
ifneq ($(GO),)
	$$(dirname $$(readlink -f $(GO)))/gofmt -w $(GO_MODULES)
endif
ifneq ($(NPM),)
	$(MAKE) --no-print-directory web/node_modules/.installed
	cd web && npm run --silent format
endif

.PHONY: lock
lock: check-tools ## choose the versions in requirements.lock anew, from pyproject.toml
	$(PYTHON) -m venv --clear target/lock
	target/lock/bin/python -m pip install --quiet --disable-pip-version-check uv
	target/lock/bin/uv pip compile pyproject.toml --quiet --extra dev --universal --python-version 3.11 \
	    --generate-hashes --upgrade --custom-compile-command "make lock" --output-file requirements.lock

.PHONY: clean
clean: ## remove everything that was built
	rm -rf $(VENV) target web/node_modules python/nicety/*.so
