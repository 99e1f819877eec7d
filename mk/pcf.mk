.PHONY: preload-pcf

preload-pcf: ## policy sessions of 12 KB into the store of a PCF: SESSIONS=200000 CONFIG=pcf.yaml
	$(CARGO) build --profile dist --locked -p signalbox
	$(CARGO) run --profile dist --locked -p pcf --example sessions -- $(SESSIONS) | \
	  ./target/dist/signalbox import pcf --config $(CONFIG)
.PHONY: bench-pcf

# The PCFs share core 0; the generator, the NRF, the BSF and the UDR get the others.
PCF_ROUNDS ?= 3
PCF_DURATION ?= 5s
PCF_PIN ?= 0
# For example --quick, or --pcf-command open5gs=127.0.0.13:7777='open5gs-pcfd -c pcf.yaml' (its NRF: 127.0.0.10:7777)
PCF_FLAGS ?=
BENCH_NICE ?= $(shell [ "$$(id -u)" = 0 ] && echo nice -n -10)

bench-pcf: dist ## AM and SM policies created and deleted by our PCF, beside other PCFs: target/bench/policy.json
	$(BENCH_NICE) ./target/dist/signalbox lab bench policy --pin $(PCF_PIN) --rounds $(PCF_ROUNDS) --duration $(PCF_DURATION) $(PCF_FLAGS)
