# The commands of a day's work; `make help` lists them.
SHELL         := /bin/bash
.DEFAULT_GOAL := check

GO          ?= go
# CI may run as another user than the one who cloned.
GIT         := git -c safe.directory='*'
STATICCHECK := .cache/bin/staticcheck-2026.2.2
MISSPELL    := .cache/bin/misspell-0.7.0
GOTEST      := .cache/bin/gotest
# What cmd/stead embeds.
NODE        := cmd/stead/embed/stead-node cmd/stead/embed/stead-dns cmd/stead/embed/stead-tunnel

# One set of flags for building, vetting and testing, so that all share one build cache.
export CGO_ENABLED := 0
export GOFLAGS     := -buildvcs=false
VERSION            := $(shell $(GIT) describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS             = -ldflags "-s -w -X main.version=$(VERSION)"

# Packages whose tests need root and a real containerd, beside test/.
ROOT_PKGS = $(shell find . -name '*_root_test.go' -not -path './.*' -not -path './test/*' -printf '%h\n' | sort -u)

# Our Go files: those that git has or would take.
GO_FILES = $(shell $(GIT) ls-files -co --exclude-standard '*.go' | grep -v '\.pb\.go$$')

say = @printf '\n== %s\n' $(1)

# VERSION= names it; the default is the tag of the commit, or 0.0.0~git<commit>.
RELEASE_VERSION = $(if $(filter command line,$(origin VERSION)),-version $(VERSION))
# Looked up once: release-check builds twice, and something may be committed meanwhile.
RELEASE_COMMIT := $(shell $(GIT) rev-parse HEAD 2>/dev/null)

.PHONY: help build check fmt fmt-check tidy tidy-check vet staticcheck misspell arch unit race conformance box e2e lab sim mutants fuzz release release-check bench bench-guard bench-kubernetes bench-dns soak test proto proto-check measure image image-jvm demo demo-clean clean FORCE

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: bin/stead ## bin/stead, and the programs that it has in it, static

# No version in it: the same source is the same file, at the same path on every host.
bin/stead-node bin/stead-dns bin/stead-tunnel: FORCE
	@$(GO) build -ldflags "-s -w" -o $@ ./cmd/$(@F)

# cmd/stead embeds them; written only when one changed, to keep the link step cached.
$(NODE): cmd/stead/embed/%: bin/%
	@mkdir -p $(@D) && { cmp -s $< $@ || cp $< $@; }

bin/stead: $(NODE) FORCE
	@$(GO) build $(LDFLAGS) -o $@ ./cmd/stead

check: fmt-check vet staticcheck misspell arch unit ## everything that needs no root, in under two minutes

fmt: ## gofmt all files
	@gofmt -w $(wildcard $(GO_FILES))

fmt-check:
	$(call say,"gofmt")
	@bad=$$(gofmt -l $(wildcard $(GO_FILES)) </dev/null); \
	 if [ -n "$$bad" ]; then echo "not formatted (make fmt):"; echo "$$bad"; exit 1; fi

tidy: ## go.mod and go.sum as the imports need them
	@$(GO) mod tidy

# Asks the network what tests of dependencies import. Without one: test/arch, for what we import.
tidy-check: ## are go.mod and go.sum so?
	$(call say,"go.mod")
	@$(GO) mod tidy -diff || { echo "go.mod is not tidy (make tidy)"; exit 1; }

vet: $(NODE)
	$(call say,"vet")
	@$(GO) vet ./...

staticcheck: $(NODE) $(STATICCHECK)
	$(call say,"staticcheck")
	@$(STATICCHECK) ./...

$(STATICCHECK):
	@mkdir -p $(@D)
	@GOBIN=$(CURDIR)/$(@D) $(GO) install honnef.co/go/tools/cmd/staticcheck@v0.8.2
	@mv $(@D)/staticcheck $@

misspell: $(MISSPELL)
	$(call say,"misspell")
	@$(GIT) ls-files -co --exclude-standard '*.go' '*.md' '*.proto' '*.yaml' '*.sh' Makefile scripts | xargs -d '\n' $(MISSPELL) -error

$(MISSPELL):
	@mkdir -p $(@D)
	@GOBIN=$(CURDIR)/$(@D) $(GO) install github.com/golangci/misspell/cmd/misspell@v0.7.0
	@mv $(@D)/misspell $@

$(GOTEST): FORCE
	@$(GO) build -o $@ ./scripts/gotest

arch: $(GOTEST)
	$(call say,"architecture")
	@$(GOTEST) ./test/arch

unit: $(GOTEST) $(NODE)
	$(call say,"unit tests")
	@$(GOTEST) $(AGAIN) -timeout 30m ./...

# Nothing can race here: test/arch forbids goroutines in the pure folders; the model check and the laws have one. Nor in two
# long tests: the simulation's plants are the code that its other tests run, with one fault each; and one goroutine compares
# snapshots.
ONE_GOROUTINE = server/plan|server/place|server/proof|agent/step|test/sim/model|test/arch
ONE_GOROUTINE_TESTS = ^TestEveryPlantIsFound$$|^TestAPatchedSnapshotIsTheBuiltOne$$

# Packages with a synctest bubble, by what their tests import. Two processors that fire timers of a bubble at the same
# moment crash the race detector of Go 1.26: they share the bubble's context of it ((*timer).unlockAndRun).
WITH_BUBBLES = {{range .TestImports}}{{if eq . "testing/synctest"}}{{$$.ImportPath}}{{end}}{{end}}

race: $(GOTEST) $(NODE) ## unit tests under the race detector (needs gcc)
	$(call say,"unit tests with -race")
	@bubbles=$$($(GO) list -f '$(WITH_BUBBLES)$(subst .Test,.XTest,$(WITH_BUBBLES))' ./... | grep .) && \
	others=$$($(GO) list ./... | grep -vE '/($(ONE_GOROUTINE))$$' | grep -vxF "$$bubbles") && \
	CGO_ENABLED=1 $(GOTEST) $(AGAIN) -race -skip '$(ONE_GOROUTINE_TESTS)' -timeout 30m $$others && \
	CGO_ENABLED=1 $(GOTEST) $(AGAIN) -race -cpu 1 -timeout 30m $$bubbles

# A test that fails and passes when it is run once more, alone, is named FLAKY and fails nothing, at most two in
# a stage: it is to be mended. What judges, panics and the race detector said is never taken back (scripts/gotest).
AGAIN = -again .cache/flaky

# From here on: root, a running containerd (scripts/setup), and no skips but those listed.
ROOT_TEST = STEAD_ROOT_TESTS=1 PATH=$(CURDIR)/$(DEBTOOLS)/usr/bin:$$PATH $(GOTEST) -skips test/e2e/SKIPS

# Debian's etcd and its tool as programs: unpacked, for installing would start a service.
DEBTOOLS := .cache/tools
$(DEBTOOLS)/usr/bin/etcd: image
	@for p in etcd-server etcd-client; do \
	  dpkg-deb -x .cache/debs/$${p}_$$(sed -n "s/^$$p=//p" scripts/images/etcd.list)_*.deb $(DEBTOOLS) || exit; done

# Debian's registry, in the same way; without it one test of e2e is skipped.
$(DEBTOOLS)/usr/bin/docker-registry:
	@mkdir -p .cache/debs $(DEBTOOLS)
	-@cd .cache/debs && { apt-get download -qq docker-registry || { apt-get update -qq && apt-get download -qq docker-registry; }; }
	-@dpkg-deb -x .cache/debs/docker-registry_*.deb $(DEBTOOLS)

# And its Prometheus, which tests the alerts.
$(DEBTOOLS)/usr/bin/prometheus:
	@mkdir -p .cache/debs $(DEBTOOLS)
	-@cd .cache/debs && { apt-get download -qq prometheus || { apt-get update -qq && apt-get download -qq prometheus; }; }
	-@dpkg-deb -x .cache/debs/prometheus_*.deb $(DEBTOOLS)

conformance: $(GOTEST) $(NODE) $(DEBTOOLS)/usr/bin/etcd $(DEBTOOLS)/usr/bin/prometheus ## the bodies of our contracts against the real things, the package, the alerts (root)
	$(call say,"conformance")
	@$(ROOT_TEST) $(AGAIN) -p 2 -timeout 30m $(ROOT_PKGS) ./test/watch

ifneq ($(wildcard test/box),)
BOX = box
box: $(GOTEST) $(NODE) ## a cluster in one process
	$(call say,"box")
	@$(ROOT_TEST) -p 1 -timeout 30m ./test/box/...
endif

STORE ?= embedded
e2e: build $(GOTEST) image $(DEBTOOLS)/usr/bin/etcd $(DEBTOOLS)/usr/bin/docker-registry $(DEBTOOLS)/usr/bin/prometheus ## real containerd, real etcd members, dig (root); STORE=external: on Debian's etcd with TLS
	$(call say,"e2e")
	@STEAD_E2E_STORE=$(STORE) $(ROOT_TEST) $(AGAIN) -p 1 -parallel 6 -timeout 45m ./test/e2e/...

# A million steps of many clusters, then every fault that was planted; both cores.
sim: ## a million steps of simulated clusters, planted faults, the model state by state (two minutes)
	$(call say,"simulation")
	@$(GO) build -o .cache/sim ./test/sim/run
	@.cache/sim $(SIM)
	$(call say,"planted faults")
	@.cache/sim -plants
	$(call say,"model check")
	@.cache/sim -model

# MUTANTS="-only plan -every 10" wakes one in ten of one package; "-only planted" plants only.
mutants: ## every condition of the pure packages negated or dropped, and the faults of SAFETY: who sees it? (more than an hour)
	$(call say,"mutants")
	@$(GO) build -o .cache/mutants ./scripts/mutants
	@.cache/mutants $(MUTANTS)

# FUZZ="-time 1m -run dnsd/FuzzRespond" is one minute of one.
fuzz: ## every fuzz test for ten minutes, what is new kept as seeds (two hours; FUZZ="-time 1m -run dnsd/")
	@$(GO) run ./scripts/fuzz $(FUZZ)

release: ## dist/ of the commit: program, Debian package, SBOM, checksums; VERSION=1.2.3 (needs dpkg-deb)
	@$(GO) run ./scripts/release -commit $(RELEASE_COMMIT) $(RELEASE_VERSION)

# In another directory, with nothing cached.
release-check: release ## is dist/ the same when it is made once more, from scratch? (ten minutes)
	$(call say,"the release once more")
	@dir=$$(mktemp -d) && trap 'chmod -R u+w $$dir && rm -rf $$dir' EXIT && mkdir $$dir/tmp && \
	  TMPDIR=$$dir/tmp GOCACHE=$$dir/cache $(GO) run ./scripts/release -commit $(RELEASE_COMMIT) $(RELEASE_VERSION) -to $$dir/dist >/dev/null && \
	  diff dist/SHA256SUMS $$dir/dist/SHA256SUMS && echo "the same, byte by byte"

bench: build ## every figure beside its floor, in one table (root, about five minutes)
	@$(GO) run ./test/bench/table

# UPDATE=1 writes test/bench/guard.json.
bench-guard: ## writes, bytes, allocations and calls a member, counted: has one risen? (half a minute; UPDATE=1 renews)
	$(call say,"what a member costs")
	@$(GO) run ./test/bench/table -guard $(if $(UPDATE),-update)

# BENCH_KUBERNETES="-sizes 10,100 -hosts 5" changes the run.
bench-kubernetes: ## Stead beside the control plane of Kubernetes, in one run (half an hour; the first time ten minutes more, 4 GB of disk)
	@$(GO) run ./test/bench/table -kubernetes $(BENCH_KUBERNETES)

# In a network namespace of its own, so that ports and packets meet nobody.
# CoreDNS has a module of its own, so that its dependencies are none of ours.
bench-dns: ## dnsd beside bare miekg/dns, CoreDNS, Knot and NSD (root, dnsperf, knot, nsd; two minutes)
	@$(GO) build -o .cache/bench-dns ./test/bench/dns
	@cd test/bench/coredns && $(GO) build -o $(CURDIR)/.cache/coredns .
	@unshare -n sh -c 'ip link set lo up && exec .cache/bench-dns $(BENCH_DNS)'

# Not part of test: it needs memory (5 GB), and the first time five minutes for the image of its hosts. Where
# user-mode Linux is not to be had, its tests are skipped, and say so (test/lab/SKIPS).
lab: build $(GOTEST) image ## hosts with kernels of their own, systemd and cgroup v2: power loss, reboot, freeze, clocks, upgrades of the package (root; half an hour)
	$(call say,"lab")
	-@scripts/setup --lab
	@STEAD_LAB=1 $(GOTEST) -skips test/lab/SKIPS -timeout 100m ./test/lab

soak: build image ## long forms of tests, by chance; SOAK="-time 5m etcd" (root, up to 30 minutes a piece)
	@$(GO) run ./scripts/debimage galera nats patroni
	@$(GO) run ./test/soak $(SOAK)

test: ## all of it: setup, check, bench-guard, race, conformance, box, e2e (root, under twenty minutes)
	$(call say,"setup")
	@scripts/setup --dev
	@$(MAKE) --no-print-directory check tidy-check proto-check bench-guard race conformance $(BOX) e2e
	@printf '\n== all passed in %s\n' "$$(date -u -d "@$$(($$(date +%s) - $(START)))" +%M:%S)"
START := $(shell date +%s)

image: ## the container images of examples and tests, from Debian packages
	@$(GO) run ./scripts/debimage etcd zookeeper box redis redis-exporter

image-jvm: ## images of what Debian has no package of: Cassandra, Kafka, Spark (needs Maven Central)
	@$(GO) run ./scripts/debimage cassandra kafka spark

PROTOC_GEN := .cache/bin/protoc-gen-go .cache/bin/protoc-gen-go-grpc
.cache/bin/protoc-gen-go: go.sum
	@GOBIN=$(CURDIR)/$(@D) $(GO) install google.golang.org/protobuf/cmd/protoc-gen-go && touch $@
.cache/bin/protoc-gen-go-grpc:
	@GOBIN=$(CURDIR)/$(@D) $(GO) install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2

proto: $(PROTOC_GEN) ## generated code from proto/*.proto (needs protoc)
	@command -v protoc >/dev/null || { echo "protoc is missing: apt-get install protobuf-compiler"; exit 1; }
	@$(call protoc,proto)

# $(1) is where the generated files go.
protoc = cd proto && PATH=$(CURDIR)/.cache/bin:$$PATH protoc --go_out=$(abspath $(1)) --go_opt=paths=source_relative \
  --go-grpc_out=$(abspath $(1)) --go-grpc_opt=paths=source_relative *.proto

# Generated files name the version of protoc, which may be another than the one at hand.
proto-check: $(PROTOC_GEN) ## are the generated files those of proto/*.proto? (needs protoc)
	$(call say,"generated code")
	@command -v protoc >/dev/null || { echo "protoc is missing: apt-get install protobuf-compiler"; exit 1; }
	@rm -rf .cache/proto && mkdir -p .cache/proto && $(call protoc,.cache/proto)
	@for f in .cache/proto/*.pb.go; do diff -u -I '^//.* protoc  *v' proto/$$(basename $$f) $$f || \
	  { echo "generated files are not those of proto/*.proto (make proto)"; exit 1; }; done

measure: ## how the tree reads: lines, methods, names, doc comments; MEASURE=-v lists them
	@$(GO) run ./scripts/measure $(MEASURE)

demo: ## a real three-member etcd cluster on this machine (root)
	@scripts/demo

demo-clean: ## end the demo and remove everything it made (root)
	@scripts/demo --clean

clean: ## remove what was built; images and packages in .cache stay
	@rm -rf bin $(NODE) .cache/bin
