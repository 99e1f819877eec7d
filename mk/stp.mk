.PHONY: bench-stp

# The STPs share core 0; the units get the others.
STP_PIN ?= 0
STP_ROUNDS ?= 3
STP_DURATION ?= 5s
STP_FLAGS ?=

bench-stp: dist ## our STP, with 1,000 screening rules and without, and osmo-stp under one load over IPA: target/bench/stp.json
	$(BENCH_NICE) ./target/dist/signalbox lab bench stp --pin $(STP_PIN) --rounds $(STP_ROUNDS) --duration $(STP_DURATION) $(STP_FLAGS)
