# make up     installs what is missing, builds and runs a cluster in the foreground
# make test   installs what is missing, builds with sanitizers and runs every test
# For the rest see CONTRIBUTING.md.

JOBS ?= $(shell nproc)
KUBECTL := $(shell command -v kubectl 2>/dev/null || echo $(CURDIR)/build/tools/kubectl)
UP_FLAGS ?= --nodes 3 --drivers gpu
UPSTREAM ?= dra control-plane webhooks conformance
PREFIX ?= /usr/local
PACKAGES := build/package

.PHONY: up release page install package image site pictures test test-fast test-etcd bench e2e-upstream lint format fuzz clean tools

up: release
	@tools/get-kubectl || echo 'going on without kubectl: install it to use the cluster'
	@printf '%s\n' 'When it is ready, in another terminal here:' \
	  '  export KUBECONFIG=...                      # the end of the ready line' \
	  '  kubectl get nodes,resourceslices           # three nodes, eight make-believe GPUs each' \
	  '  kubectl apply -f examples/gpu/basic-resourceclaimtemplate.yaml' \
	  '  kubectl -n basic-resourceclaimtemplate wait pod --all --for=condition=Ready' \
	  '  kubectl -n basic-resourceclaimtemplate exec pod0 -- printenv | grep GPU' \
	  '  build/release/dibs open                    # a link to the page that shows it' ''
	./build/release/dibs up $(UP_FLAGS)

release:
	@tools/install-packages build
	cmake --preset release $(if $(VERBOSE),,>/dev/null)
	ninja -C build/release -j $(JOBS) dibs fake_nvml driver

install: release
	tools/install-files build/release/dibs $(PREFIX) "$(DESTDIR)" private

package: release
	@rm -rf $(PACKAGES)
	tools/package build/release/dibs $(PACKAGES)

image: package
	tools/image $(PACKAGES)/dibs-*.tar.gz $(PACKAGES)/dibs-image.tar

site: release
	tools/site/make build/release/dibs build/site

# Those of README.md, made anew of what the binary does now.
pictures: packages release
	tools/record build/release/dibs docs/images/first-minute.svg
	DIBS=build/release/dibs tests/page/picture.py docs/images/page.png

# What was built without the page gets it with its next build.
page:
	@rm -f build/*/src/server/page_assets.cc
	@mkdir -p build/web
	@cmake -DROOT=$(CURDIR) -DOUT=$(CURDIR)/build/web/last.cc -P cmake/page.cmake

test: packages tools
	cmake --preset asan $(if $(VERBOSE),,>/dev/null)
	ninja -C build/asan -j $(JOBS)
	KUBECTL=$(KUBECTL) tools/run-tests build/asan -j $(JOBS) -L fast
	KUBECTL=$(KUBECTL) tools/run-tests build/asan -j $(JOBS) -LE fast

# Everything that meets an etcd, with all kinds of them; wants what `make test` wants.
test-etcd: packages tools
	cmake --preset asan $(if $(VERBOSE),,>/dev/null)
	ninja -C build/asan -j $(JOBS)
	KUBECTL=$(KUBECTL) tools/test-etcd build/asan $(JOBS) $(PARTS)

test-fast: packages
	cmake --preset asan >/dev/null
	ninja -C build/asan -j $(JOBS)
	ctest --test-dir build/asan --output-on-failure -j $(JOBS) -L fast

bench: packages release
	ninja -C build/release -j $(JOBS)
	@tools/get-upstream etcd kube-apiserver kube-scheduler || echo 'going on without what was not built: its figures are left out'
	bench/run build/release

# Wants source trees, which tests/upstream/run.py names.
e2e-upstream: packages release
	@failed=; for selection in $(UPSTREAM); do \
	  DIBS=build/release/dibs KUBECTL=$(KUBECTL) tests/upstream/run.py $$selection || failed="$$failed $$selection"; \
	done; [ -z "$$failed" ] || { echo "not as expected:$$failed"; exit 1; }

fuzz: packages
	cmake --preset fuzz >/dev/null
	ninja -C build/fuzz -j $(JOBS)
	fuzz/run --jobs $(JOBS) build/fuzz

lint: packages
	tools/lint

format:
	git ls-files '*.cc' '*.h' | xargs clang-format-14 -i

tools: packages
	@tools/get-go >/dev/null || echo 'going on without Go: tests that need it are left out'
	@tools/get-kubectl
	@tools/get-upstream || echo 'going on without etcd 3.6: tests use the one that is installed'

.PHONY: packages
packages:
	@tools/install-packages

clean:
	rm -rf build
