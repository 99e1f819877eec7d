.PHONY: bench-dsr bench-pdra

# The relays share core 0; simulators and generator get the others.
BENCH_PIN ?= 0
BENCH_ROUNDS ?= 3
BENCH_DURATION ?= 5s

# As root, all of it goes before other work on this machine; both relays alike.
BENCH_NICE ?= $(shell [ "$$(id -u)" = 0 ] && echo nice -n -10)

bench-dsr: dist ## our router and freeDiameter as relays under one load: target/bench/dsr.json
	$(BENCH_NICE) ./target/dist/signalbox lab bench dsr --pin $(BENCH_PIN) --rounds $(BENCH_ROUNDS) --duration $(BENCH_DURATION)

bench-pdra: dist ## our Policy DRA and freeDiameter with rt_default before four PCRFs: target/bench/pdra.json
	$(BENCH_NICE) ./target/dist/signalbox lab bench pdra --pin $(BENCH_PIN) --rounds $(BENCH_ROUNDS) --duration $(BENCH_DURATION)
