.PHONY: bench-nrf bench-instructions

# The servers share core 0; the generator gets the others.
NRF_ROUNDS ?= 3
NRF_DURATION ?= 5s
NRF_PIN ?= 0
# For example --quick, or --nrf-command open5gs=127.0.0.10:7777='open5gs-nrfd -c nrf.yaml'
NRF_FLAGS ?=
INSTRUCTIONS_FLAGS ?=
BENCH_NICE ?= $(shell [ "$$(id -u)" = 0 ] && echo nice -n -10)

bench-nrf: dist ## discoveries of our NRF beside nginx serving a file of the same size: target/bench/nrf.json
	$(BENCH_NICE) ./target/dist/signalbox lab bench nrf --pin $(NRF_PIN) --rounds $(NRF_ROUNDS) --duration $(NRF_DURATION) $(NRF_FLAGS)

bench-instructions: dist ## user instructions for each request under callgrind: target/bench/instructions.json
	./target/dist/signalbox lab bench instructions $(INSTRUCTIONS_FLAGS)
