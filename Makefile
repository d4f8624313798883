# make up     installs what is missing, builds and runs a cluster in the foreground
# make test   installs what is missing, builds with sanitizers and runs every test
# For the rest see CONTRIBUTING.md.

JOBS ?= $(shell nproc)
KUBECTL := $(shell command -v kubectl 2>/dev/null || echo $(CURDIR)/build/tools/kubectl)
UP_FLAGS ?= --nodes 3 --drivers gpu

.PHONY: up release test test-fast bench lint format fuzz clean tools

up: release
	@tools/get-kubectl || echo 'going on without kubectl: install it to use the cluster'
	@printf '%s\n' 'When it is ready, in another terminal here:' \
	  '  export KUBECONFIG=...                      # the end of the ready line' \
	  '  kubectl get nodes,resourceslices           # three nodes, eight make-believe GPUs each' \
	  '  kubectl apply -f examples/gpu/basic-resourceclaimtemplate.yaml' \
	  '  kubectl -n basic-resourceclaimtemplate wait pod --all --for=condition=Ready' \
	  '  kubectl -n basic-resourceclaimtemplate exec pod0 -- printenv | grep GPU' ''
	./build/release/dibs up $(UP_FLAGS)

release:
	@tools/install-packages build
	cmake --preset release $(if $(VERBOSE),,>/dev/null)
	ninja -C build/release -j $(JOBS) dibs

test: packages tools
	cmake --preset asan $(if $(VERBOSE),,>/dev/null)
	ninja -C build/asan -j $(JOBS)
	KUBECTL=$(KUBECTL) ctest --test-dir build/asan --output-on-failure -j $(JOBS)

test-fast: packages
	cmake --preset asan >/dev/null
	ninja -C build/asan -j $(JOBS)
	ctest --test-dir build/asan --output-on-failure -j $(JOBS) -L fast

bench: packages release
	ninja -C build/release -j $(JOBS)
	bench/run build/release

fuzz: packages
	cmake --preset fuzz >/dev/null
	ninja -C build/fuzz -j $(JOBS)
	fuzz/run --jobs $(JOBS) build/fuzz

lint: packages
	tools/lint

format:
	git ls-files '*.cc' '*.h' | xargs clang-format-14 -i

tools: packages
	@tools/get-kubectl
	@tools/get-upstream || echo 'going on without etcd 3.6: tests use the one that is installed'

.PHONY: packages
packages:
	@tools/install-packages

clean:
	rm -rf build
