# Signalbox. `make up` to see it run, `make test` to prove it works; `make help` lists the rest.
CARGO ?= cargo
# Parts of the quick build; `make dist` has all.
FEATURES ?= lab
.DEFAULT_GOAL := help

.PHONY: help up build dist test properties deps fmt lint deny docs bench

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: build ## build, then start the whole core with simulated traffic (Ctrl-C ends it)
	./target/release/signalbox up

build: ## the binary for daily work without Kafka, LDAP, MariaDB and Cassandra, target/release/signalbox (FEATURES=lab,kafka,ldap,mariadb,cassandra for all)
	$(CARGO) build --release --locked -p signalbox --no-default-features --features $(FEATURES)

DIST_FLAGS = $(if $(CASSANDRA_TLS),--features cassandra-tls)
dist: ## the binary that packages contain and benches measure, target/dist/signalbox (ThinLTO, slow to build; TRAINED=1: optimised by a profile, slower to build; CASSANDRA_TLS=1 with TLS to Cassandra)
	$(if $(TRAINED),scripts/build-trained.sh,$(CARGO) build --profile dist --locked -p signalbox) $(DIST_FLAGS)

# One seed for the properties: what a run finds, the next one finds again. `make properties` draws new ones.
test: deps ## install what the tests need and run every test
	PROPTEST_RNG_SEED=2501 $(CARGO) test --locked --workspace --no-fail-fast

properties: ## every property with new random input, 20 times the usual cases (15 minutes)
	PROPTEST_CASES=5000 $(CARGO) test --locked -p bounded -p http2 -p mediation -p notifier -p numbers -p overload \
		-p pcc -p policy -p routing -p sbi-proto -p sbi -p settings -p store -p telemetry

deps: ## the programs that the tests use as real peers (Debian packages; says what is missing when not root)
	@scripts/test-deps.sh

fmt: ## format the code
	$(CARGO) fmt --all

lint: ## format, lint and prose checks, warnings denied
	@scripts/prose-check
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) clippy --locked -p signalbox --no-default-features -- -D warnings
	$(CARGO) clippy --locked -p store -p scp --no-default-features -- -D warnings

deny: ## licences and advisories, where cargo-deny is present
	@if $(CARGO) deny --version >/dev/null 2>&1; then $(CARGO) deny check licenses bans sources; \
	else echo "cargo-deny is not installed; skipped (cargo install cargo-deny)"; fi

docs: ## write the generated files (references of configuration and metrics, clauses, rules and dashboards); tests compare them
	$(CARGO) build --locked -p signalbox
	mkdir -p docs/reference
	./target/debug/signalbox config reference > docs/reference/configuration.md
	./target/debug/signalbox metrics > docs/reference/metrics.md
	rm -rf deploy/observability
	./target/debug/signalbox observability write deploy/observability
	$(CARGO) run --quiet --locked -p layout --example compliance > docs/reference/compliance.md

-include mk/*.mk
