# One door for every chore. `just` alone lists them.

export CGO_ENABLED := "0"

_default:
    @just --list --unsorted

# build gettierd and gettier into bin/
build:
    go build -trimpath -o bin/ ./daemon/gettierd ./tui/gettier

# all tests
test *ARGS:
    go test -shuffle=on {{ARGS}} ./...

# all tests with the race detector (needs cgo)
race *ARGS:
    CGO_ENABLED=1 go test -race -shuffle=on {{ARGS}} ./...

# vet, formatting and the linters of .golangci.yml
lint:
    test -z "$(gofmt -l .)"
    go vet ./...
    go tool -modfile=.ci/tools.mod golangci-lint run

# format all Go files
fmt:
    gofmt -w .

# each fuzz target for TIME
fuzz TIME="10s":
    .ci/fuzz {{TIME}}

# benchmarks; every figure is a ratio within one run; `just bench redact` is that package's, `just bench ledger` stands beside other logs
bench PATTERN="." PKG="./...":
    {{ if PATTERN == "ledger" { "cd ledger/bench && go run ." } else { "go test -run '^$' -benchmem -bench" } }} {{ if PATTERN == "ledger" { "" } else if PATTERN == "redact" { ". ./ledger/redact" } else { "'" + PATTERN + "' " + PKG } }}

# end-to-end runs: built binaries, real nginx, real clients
e2e:
    go test -count=1 -run E2E ./scenarios/... ./daemon/... ./tui/gettier/...

# one trap, with and without the gate
demo *ARGS:
    go run ./tui/gettier demo {{ARGS}}

# measure redaction beside gitleaks on labelled texts where they lie (DIR)
cases DIR:
    cd ledger/redact/bench && go run . '{{DIR}}'
    GETTIER_CASES={{DIR}} go test -count=1 -v -run 'Own|Foreign' ./ledger/redact

# change the judge in one place at a time and show which changes break no row of its tables
mutants *FILES:
    cd sensors/verdict/testdata/mutants && go run . {{FILES}}

# what .ci/run does
check:
    .ci/run
