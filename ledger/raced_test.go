//go:build race

package ledger_test

// raced: the race detector looks on, which needs each path, not each byte.
const raced = true
