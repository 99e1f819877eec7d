.PHONY: attack

# ATTACK="--only http2" runs a family, "--list" shows them all, "--quick" takes small doses.
ATTACK ?=

attack: build ## every attack that we know of on the release binary, an honest client beside each: target/attack/report.json
	$(CARGO) build --release --locked -p attack
	./target/release/attack $(ATTACK)
