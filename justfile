# One door for every chore. `just` alone lists them.

export CGO_ENABLED := "0"

_default:
    @just --list --unsorted

# build gettierd and gettier into bin/
build:
    go build -trimpath -o bin/ ./daemon/gettierd ./tui/gettier

# the tests of rooms (`just test ledger sensors -run=X`), or all
test *ROOMS:
    go test -shuffle=on $(.ci/rooms {{ROOMS}})

# the same with the race detector (needs cgo)
race *ROOMS:
    CGO_ENABLED=1 go test -race -shuffle=on $(.ci/rooms {{ROOMS}})

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

# the long runs: each pair of changes of a command (2.7 million), in a real bash, too, and each fuzz target for TIME
fuzz-long TIME="10m":
    GETTIER_METAMORPHIC=all go test -count=1 -timeout 60m -v -run 'Metamorphic|Soundness' ./daemon/action/shell
    .ci/fuzz {{TIME}}

# benchmarks of rooms (`just bench proxy action`), or all; every figure is a ratio within one run
bench *ROOMS:
    #!/usr/bin/env bash
    set -euo pipefail
    for room in {{ if ROOMS == "" { "all" } else { ROOMS } }}; do
        case $room in
        all) go test -run '^$' -benchmem -bench . ./... ;;
        ledger) (cd ledger/bench && go run .) ;; # beside other logs
        proxy) go test -run '^$' -bench Proxy ./daemon/e2e ;; # beside direct, ReverseProxy and nginx
        *) go test -run '^$' -benchmem -bench . $(.ci/rooms $room) ;;
        esac
    done

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

# the ledger under 11,000 power cuts, 200 kills and every cut of 4 KiB: about 10 minutes
thorough:
    go test -count=1 -timeout 60m -run 'TestPowerLoss|TestKill|TestDamagedFiles' ./ledger -thorough
    GETTIER_EVERY_CUT=1 go test -count=1 -timeout 30m -run E2EDamagedFiles ./daemon/e2e

# what .ci/run does
check:
    .ci/run
