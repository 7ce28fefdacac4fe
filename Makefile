# The front door. Everything that is built or installed goes below the user's cache folder, never into the checkout.

cache := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/restamp
export CARGO_TARGET_DIR ?= $(cache)/target
cargo_deny := $(cache)/tools/bin/cargo-deny-0.20.2

.PHONY: help demo test test-node compat image bench lint fmt crd deploy cluster

help: ## Lists the targets.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 10

demo: ## Plays the main job on a real control plane. KEEP=1 leaves it up.
	@demo/demo

test: lint cluster ## Everything that CI checks.
	cd tests/cluster/tool && GOWORK=off go vet ./... && GOWORK=off go test -count=1 -v ./...
	cargo build --locked --tests
	@# Most of these tests wait, and not for the processor.
	RUST_TEST_THREADS=8 cargo test --locked -- --skip node::
	tests/node --if-possible
	demo/demo

test-node: cluster ## Tests the image and the chart on a real node; needs root.
	tests/node

compat: ## Tests with the oldest Kubernetes that is supported; the first time, its build takes 8 minutes.
	RESTAMP_KUBERNETES=oldest tests/cluster/cluster build
	RESTAMP_KUBERNETES=oldest RUST_TEST_THREADS=8 cargo test --locked --test operator -- --skip node::

image: ## Builds the operator's image, as an OCI archive.
	deploy/image $(cache)/image/restamp.tar

bench: cluster ## Measures the operator on a local control plane, beside its limits; takes half an hour.
	bench/bench

lint: $(cargo_deny) ## Formats, lints, dependencies, shell scripts.
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	$(cargo_deny) --locked check licenses bans sources
	@if command -v shellcheck >/dev/null; then shellcheck demo/demo tests/cluster/cluster tests/node bench/bench deploy/image deploy/render .ci/run; \
	else echo 'shellcheck is not installed (in Debian: apt-get install shellcheck): the scripts are not checked'; fi

fmt: ## Formats the code.
	cargo fmt
	gofmt -w tests/cluster

crd: ## Writes crds/driftreports.yaml again, from the Rust types.
	cargo run --locked --quiet -- crd > crds/driftreports.yaml

deploy: ## Writes again what in deploy/ is made from the Helm chart.
	deploy/render

cluster: ## Builds the test cluster's programs; the first time, this takes 10 minutes.
	tests/cluster/cluster build

$(cargo_deny):
	cargo install cargo-deny --locked --version 0.20.2 --root $(cache)/tools
	mv $(cache)/tools/bin/cargo-deny $@
