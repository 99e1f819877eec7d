.PHONY: bench-dsr

# The relays share core 0; simulators and generator get the others.
BENCH_PIN ?= 0
BENCH_ROUNDS ?= 3
BENCH_DURATION ?= 5s

bench-dsr: build ## our router and freeDiameter as relays under one load: target/bench/dsr.json
	./target/release/signalbox lab bench dsr --pin $(BENCH_PIN) --rounds $(BENCH_ROUNDS) --duration $(BENCH_DURATION)
