.PHONY: preload-pcf

preload-pcf: ## policy sessions of 12 KB into the store of a PCF: SESSIONS=200000 CONFIG=pcf.yaml
	$(CARGO) build --profile dist --locked -p signalbox
	$(CARGO) run --profile dist --locked -p pcf --example sessions -- $(SESSIONS) | \
	  ./target/dist/signalbox import pcf --config $(CONFIG)
