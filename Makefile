# Signalbox. `make up` to see it run, `make test` to prove it works; `make help` lists the rest.
CARGO ?= cargo
.DEFAULT_GOAL := help

.PHONY: help up build test deps fmt lint deny docs bench

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: build ## build, then start the whole core with simulated traffic (Ctrl-C ends it)
	./target/release/signalbox up

build: ## the release binary, target/release/signalbox
	$(CARGO) build --release --locked -p signalbox

test: deps ## install what the tests need and run every test
	$(CARGO) build --locked -p signalbox
	$(CARGO) test --locked --workspace --no-fail-fast

deps: ## the programs that the tests use as real peers (Debian packages; says what is missing when not root)
	@scripts/test-deps.sh

fmt: ## format the code
	$(CARGO) fmt --all

lint: ## format and lint checks, warnings denied
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

deny: ## licences and advisories, where cargo-deny is present
	@if $(CARGO) deny --version >/dev/null 2>&1; then $(CARGO) deny check licenses bans sources; \
	else echo "cargo-deny is not installed; skipped (cargo install cargo-deny)"; fi

docs: build ## write the generated pages of the book (references of configuration and metrics)
	mkdir -p docs/reference
	./target/release/signalbox config reference > docs/reference/configuration.md
	./target/release/signalbox metrics > docs/reference/metrics.md

-include mk/*.mk
