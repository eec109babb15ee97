package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// lines is what a program writes while it runs.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestProgramHidesUnknownFields runs the whole program and logs, through the
// logger that it made itself, what no line of ours does: a field that is on no
// list, and text in the shape of a prompt or a fact in those that are. The
// control is a field that may come through.
func TestProgramHidesUnknownFields(t *testing.T) {
	before, w, flags := slog.Default(), log.Writer(), log.Flags()
	t.Cleanup(func() { slog.SetDefault(before); log.SetOutput(w); log.SetFlags(flags) })
	dir := home(t)
	ctx, cancel := context.WithCancel(t.Context())
	var errs lines
	out, in := io.Pipe()
	done := make(chan int, 1) // read once, below
	go func() {
		done <- run(ctx, []string{"--state", filepath.Join(dir, "state"), "--config", filepath.Join(dir, "gettierd.yaml"), "--socket", filepath.Join(dir, "run", "d.sock"), "--proxy-port", "0", "--log-level", "debug"},
			[]string{"HOME=" + dir}, in, &errs)
		in.Close()
	}()
	var ready struct{ Ready bool }
	if err := json.NewDecoder(out).Decode(&ready); err != nil || !ready.Ready {
		cancel()
		t.Fatalf("exit %d, not ready: %v %s", <-done, err, errs.String())
	}
	go io.Copy(io.Discard, out)
	const prompt = "please drop the customers table"
	logger := slog.Default()
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		logger.Log(ctx, level, "planted", "prompt", prompt, "turn", prompt, "error", errors.New(`upstream said {"content":"`+prompt+`"}`), "stage", "verify")
	}
	logger.With("fact", prompt).Warn("planted", slog.Group("turn", "stage", prompt))
	logger.WithGroup("claim").Warn("planted", "stage", prompt)
	log.Printf("planted %q", prompt)
	cancel()
	if code := <-done; code != exitOK {
		t.Errorf("exit %d", code)
	}
	got := errs.String()
	if strings.Contains(got, "customers") {
		t.Errorf("the prompt is in the log:\n%s", got)
	}
	if n := strings.Count(got, "prompt=[hidden]"); n != 4 || strings.Count(got, "stage=verify") != 4 || strings.Count(got, "planted") != 7 {
		t.Errorf("%d hidden fields:\n%s", n, got)
	}
}
