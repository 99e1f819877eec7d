.PHONY: bench-store bench-policy bench-engines crash-store test-sites

BENCH_DIR ?= $(or $(TMPDIR),/tmp)/signalbox-bench
RECORDS ?= 1000000
SESSIONS ?= 200000

bench-store: ## what the embedded store costs: RECORDS=1000000 BENCH_DIR=…
	$(CARGO) run --profile dist --locked -p store --example store-bench -- --records $(RECORDS) --directory $(BENCH_DIR)

bench-policy: ## policy sessions of 12 KB in the embedded store: SESSIONS=200000 BENCH_DIR=…
	$(CARGO) run --profile dist --locked -p store --example policy-bench -- --sessions $(SESSIONS) --directory $(BENCH_DIR)

bench-engines: ## the embedded store beside other storage engines
	$(CARGO) run --profile dist --locked -p store --features bench-engines --example engine-bench -- --records $(RECORDS) --directory $(BENCH_DIR)

crash-store: ## kill -9 under load, a hundred times; power failures and damage to files, ten thousand times each
	STORE_POWER_FAILURES=10000 $(CARGO) test --locked -p store --lib power:: -- --nocapture
	STORE_CRASH_ROUNDS=100 $(CARGO) test --locked -p store --test it crash:: -- --nocapture
	STORE_DAMAGE_TRIALS=10000 $(CARGO) test --locked -p store --test it trials:: -- --nocapture

test-sites: ## two sites of a Cassandra cluster that are cut off in turns: fails yet, see docs/store.md
	$(CARGO) test --locked -p store --test it cassandra:: -- --ignored --nocapture
