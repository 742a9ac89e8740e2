SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT := $(shell git rev-parse --verify --quiet HEAD 2>/dev/null || echo unknown)
CLI := github.com/tunnel-gateway/tunnel-gateway/internal/cli
LDFLAGS := -s -w -X $(CLI).version=$(VERSION) -X $(CLI).commit=$(COMMIT)

# Go builds a tool the first time and keeps it in its build cache.
export TOOL := go tool -modfile=test/tools/go.mod

# A module of its own: what tests the chart, with Helm.
CHART := test/interop/chart
# The race detector needs a C compiler; `make test RACE=` does without both.
RACE ?= -race
# What `go test` is given, for instance TEST=./internal/gateway.
TEST ?= ./...
# How long each fuzz target runs.
FUZZTIME ?= 3s
# Every single result, for whoever wants to count them.
export TEST_RESULTS ?= bin/test-results.json
# Modules of their own, whose dependencies are none of the product's business.
# The build of the image has none.
MODULES := $(patsubst %/go.mod,%,$(sort $(if $(wildcard test),$(shell find test -name go.mod))))
# Those of them with code of ours: the others only name programs and versions.
CODE_MODULES := $(foreach module,$(MODULES),$(if $(wildcard $(module)/*.go),$(module)))
# Those that test the controller beside programs that users have.
INTEROP := $(patsubst %/go.mod,%,$(wildcard test/interop/*/go.mod))

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/tunnel-gateway
	@echo "==> building bin/tunnel-gateway $(VERSION)"
	@CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/tunnel-gateway ./cmd/tunnel-gateway

.PHONY: demo
demo: build ## Run everything on this machine; DEMO_ARGS=--once checks and ends, DEMO_PORT=<port> instead of 8080
	@echo "==> building the demo"
	@go build -o bin/demo ./test/demo
	@echo "==> starting the demo"
	@exec bin/demo $(DEMO_ARGS)

.PHONY: test
test: control-plane ## Run every test; TEST=<packages> for some, RACE= without the race detector
	@echo "==> testing $(TEST)"
	@mkdir -p $(dir $(TEST_RESULTS))
	@$(TOOL) gotestsum --format standard-quiet --jsonfile $(TEST_RESULTS) -- $(RACE) -timeout 14m $(TEST)
	@$(MAKE) --no-print-directory explore fuzz

.PHONY: render
render: ## Print what the chart installs by default
	@go tool -C $(CHART) helm template tunnel-gateway $(CURDIR)/charts/tunnel-gateway --namespace tunnel-gateway

.PHONY: explore
explore: ## Visit every state that faults and changes lead a tunnel to; DEPTH=<faults and changes in one trace> for more
	@echo "==> exploring the life of a tunnel"
	@go test ./internal/tunnel -run '^TestEveryReachableStateKeepsTheInvariants$$' -count 1 -v -args $(if $(DEPTH),-tunnel.depth=$(DEPTH))

.PHONY: fuzz
fuzz: ## Fuzz the decision for a moment; FUZZTIME=10m for longer
	@mkdir -p bin
	@for target in $$(go test ./internal/gateway -list '^Fuzz' | grep '^Fuzz'); do \
		echo "==> fuzzing $$target for $(FUZZTIME)"; \
		go test ./internal/gateway -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) >bin/fuzz.log || { cat bin/fuzz.log; exit 1; }; \
	done

.PHONY: conformance
conformance: control-plane ## Run the Gateway API's conformance suite; ARGS=<flags of docs/conformance>
	@echo "==> running the conformance suite (its logs go to bin/conformance)"
	@$(call test-module,test/conformance,conformance) . -args $(ARGS)

.PHONY: interop
interop: control-plane ## Run the controller beside programs that users have; MODULE=test/interop/<one> for one
	@status=0; for module in $(or $(MODULE),$(INTEROP)); do \
		echo "==> testing $$module"; \
		($(call test-module,$$module,interop-$$(basename $$module)) ./...) || status=1; \
	done; exit $$status

# Tests the module $(1); its results go to bin/$(2)-results.json.
define test-module
mkdir -p bin && cd $(1) && go tool -modfile="$(CURDIR)/test/tools/go.mod" gotestsum --format testname \
	--jsonfile "$(CURDIR)/bin/$(2)-results.json" -- -timeout 30m -count 1
endef

.PHONY: control-plane
control-plane: ## Build the control plane that tests and demo run against, once per machine
	@echo "==> preparing the control plane"
	@go run ./test/cluster/build >/dev/null

.PHONY: golden
golden: ## Write the golden files anew; read the diff before committing it
	@echo "==> writing testdata/*.golden.*"
	@go test ./internal/connector ./internal/gateway ./internal/cli -run Golden -update
	@go test -C $(CHART) -run 'Golden|Config|README' -update

.PHONY: generate
generate: ## Write the generated files anew
	@echo "==> generating"
	@go generate ./...

.PHONY: fmt
fmt: tools ## Format the Go files
	@echo "==> formatting"
	@$(TOOL) golangci-lint fmt ./...

.PHONY: lint
lint: tools ## Check formatting and the house rules
	@echo "==> linting"
	@$(TOOL) golangci-lint run --allow-parallel-runners ./...
	@for module in $(CODE_MODULES); do \
		echo "==> linting $$module"; \
		(cd $$module && go tool -modfile="$(CURDIR)/test/tools/go.mod" golangci-lint run --allow-parallel-runners ./...); \
	done

.PHONY: verify
verify: lint ## Check all that lint checks, generated files, documentation, go.mod files, dead code and vulnerabilities
	@.ci/check-generated
	@echo "==> checking that go.mod and go.sum are tidy"
	@for module in . $(MODULES); do go mod tidy -C $$module -diff; done
	@echo "==> checking the links and commands of the documentation"
	@go test -C test/docs -count 1 ./...
	@.ci/check-dead-code
	@.ci/check-vulnerabilities

.PHONY: tools
tools: ## Build the development tools, once per machine
	@.ci/build-tools

.PHONY: clean
clean: ## Remove what was built here; what clones share stays in the user's cache directory
	@echo "==> removing bin"
	@rm -rf bin
