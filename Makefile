# The commands that a person and .ci/run use alike. On a fresh machine with Go,
# "make demo" and "make test" do all the set-up.

GO      ?= go
BIN     := bin
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
LDFLAGS := -s -w -X main.version=$(VERSION)

.PHONY: all build demo test race vet lint fmt fuzz cross bench hostile clean

all: build

# Static: pulling in the C library would double the start-up time.
build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/cursor-wrap ./cmd/fakeagent

demo: build
	scripts/demo $(BIN)

test:
	$(GO) test ./...

race:
	$(GO) test -race ./...

vet:
	$(GO) vet ./...

lint: vet
	$(GO) tool staticcheck ./...

fmt:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo 'not gofmt-ed: run gofmt -w on them'; exit 1; }

# A short run of every fuzz target; FUZZTIME=10m for a long one.
FUZZTIME ?= 10s
fuzz:
	@GO='$(GO)' scripts/fuzz $(FUZZTIME)

cross:
	@for os in linux darwin; do for arch in amd64 arm64; do \
		echo "build $$os/$$arch"; \
		CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch $(GO) build -o /dev/null ./cmd/cursor-wrap && \
		GOOS=$$os GOARCH=$$arch $(GO) vet ./... || exit 1; \
	done; done

# BENCH=-quick for a look, BENCH='-only latency' for a part.
bench: build
	$(GO) run ./scripts/bench -wrap $(BIN)/cursor-wrap $(BENCH)

# Trees that do not want to end, times each way for a run to end.
# HOSTILE='-containment tree -trees storm,hydra' for a part; HOSTILE=-table
# compares with timeout, tini and dumb-init.
hostile: build
	$(GO) run ./scripts/hostile -wrap $(BIN)/cursor-wrap -j 2 $(HOSTILE)

clean:
	rm -rf $(BIN)
