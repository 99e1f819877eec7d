.PHONY: bench-backup bench-store bench-policy bench-engines crash-store test-sites test-cassandra-tls

BENCH_DIR ?= $(or $(TMPDIR),/tmp)/signalbox-bench
RECORDS ?= 1000000
SESSIONS ?= 200000
ENGINE_SESSIONS ?= 50000

bench-store: ## what the embedded store costs: RECORDS=1000000 BENCH_DIR=…
	$(CARGO) run --profile dist --locked -p store --example store-bench -- --records $(RECORDS) --directory $(BENCH_DIR)

bench-policy: ## policy sessions of 12 KB in the embedded store: SESSIONS=200000 BENCH_DIR=…
	$(CARGO) run --profile dist --locked -p store --example policy-bench -- --sessions $(SESSIONS) --directory $(BENCH_DIR)

# RocksDB and zstd are built from C++ and C, which takes a quarter of an hour of two cores the first time and needs libclang
# (apt-get install libclang-dev). Checksums in hardware, as in RocksDB's own builds.
bench-engines: export CXXFLAGS := $(if $(filter x86_64,$(shell uname -m)),-msse4.2 -mpclmul) $(CXXFLAGS)
bench-engines: ## the embedded store beside RocksDB, fjall, redb and SQLite: bindings (RECORDS=1000000), policy sessions (ENGINE_SESSIONS=50000)
	$(CARGO) build --profile dist --locked -p store --features bench-engines --example engine-bench
	target/dist/examples/engine-bench --records $(RECORDS) --directory $(BENCH_DIR)
	target/dist/examples/engine-bench --policy --records $(ENGINE_SESSIONS) --directory $(BENCH_DIR)

crash-store: ## kill -9 under load, a hundred times; power failures and damage to files, ten thousand times each
	STORE_POWER_FAILURES=10000 $(CARGO) test --locked -p store --lib power:: -- --nocapture
	STORE_CRASH_ROUNDS=100 $(CARGO) test --locked -p store --test it crash:: -- --nocapture
	STORE_DAMAGE_TRIALS=10000 $(CARGO) test --locked -p store --test it trials:: -- --nocapture

test-sites: ## two sites of a Cassandra cluster that are cut off in turns, each writing meanwhile
	$(CARGO) test --locked -p store --test it cassandra:: -- --ignored --nocapture

test-cassandra-tls: ## encrypted connections to a real Cassandra, with authorities and addresses that do not fit (builds aws-lc)
	$(CARGO) test --locked -p store --features cql-tls --test it cassandra_tls:: -- --nocapture

bench-backup: dist ## what a backup costs the requests beside it, and whether all of it is there after a restore: target/bench/backup.txt
	scripts/bench-backup.sh
