.PHONY: stage deb image sbom test-chart test-packages test-collector test-dashboards test-two-hosts bench-footprint

# cargo install cargo-deb --locked
CARGO_DEB ?= cargo-deb
# The system's xz is faster than the built-in one; --fast as well makes a larger package in less time.
DEB_FLAGS ?= --compress-system

stage: ## the statically linked program with man pages and completions: target/package (PROFILE=release builds in less time)
	scripts/package-stage.sh

deb: stage ## the Debian package: target/debian/*.deb (cargo install cargo-deb)
	@mkdir -p target/debian
	$(CARGO_DEB) --quiet -p signalbox --no-build --no-strip --output target/debian/ $(DEB_FLAGS)

image: stage ## an OCI image without a container engine: target/image, target/image.tar (apt-get install umoci skopeo)
	scripts/image.sh

sbom: ## what the program consists of: target/package/signalbox.cdx.json (CycloneDX) and licences.txt, by jq
	scripts/sbom.sh

test-chart: ## lints and renders the Helm chart, and checks what it renders (go install helm.sh/helm/v3/cmd/helm@v3.22.0)
	scripts/test-chart.sh

test-packages: ## installs, upgrades, purges the package in a fresh Debian root and runs the image, both made before (as root)
	@if command -v $${HELM:-helm} > /dev/null; then scripts/test-chart.sh; else echo "skipped: the chart, helm is missing"; fi
	scripts/test-packages.sh

test-collector: build ## the collector of OpenTelemetry, built from its Go modules, takes the traces of a core over TLS
	scripts/test-collector.sh

test-dashboards: ## Grafana's own types judge the dashboards (npm's @grafana/schema)
	scripts/test-dashboards.sh

test-two-hosts: build ## two hosts in network namespaces, set up by the blocks of docs/two-hosts.md, with what breaks there (as root; needs FEATURES=lab,mariadb)
	scripts/test-two-hosts.sh

bench-footprint: dist ## size of the program, time to the first answer and memory at rest of each function: target/bench/footprint.txt (as root; OTHERS=… measures other programs beside them)
	scripts/bench-footprint.sh
