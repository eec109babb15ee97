package ipcserver

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// auditKeys answers with the log's public keys.
func (s *Server) auditKeys(w http.ResponseWriter, r *http.Request) {
	if q := readQuery(r); q.err != nil {
		s.fail(w, r, q.err)
		return
	}
	b, err := s.o.Backend.AuditKeys(r.Context())
	s.plainText(w, r, b, err)
}

// auditProof answers with a proof that an entry is in the log.
func (s *Server) auditProof(w http.ResponseWriter, r *http.Request) {
	q := readQuery(r)
	seq, err := parseSeq(r.PathValue("seq"))
	if q.err != nil {
		err = q.err
	} else if err != nil {
		err = bad("an entry is named by its sequence number")
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	b, err := s.o.Backend.Proof(r.Context(), seq)
	s.plainText(w, r, b, err)
}

func (s *Server) plainText(w http.ResponseWriter, r *http.Request, b []byte, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write(b) // the client is gone: nobody to tell
}

// auditExport streams the whole log as a tar.
func (s *Server) auditExport(w http.ResponseWriter, r *http.Request) {
	s.sendFile(w, r, "application/x-tar", s.o.Backend.Export)
}

// ledgerBackup streams a copy of the ledger's file.
func (s *Server) ledgerBackup(w http.ResponseWriter, r *http.Request) {
	s.sendFile(w, r, "application/octet-stream", s.o.Backend.Backup)
}

// ledgerSize answers with what the ledger takes of the disk.
func (s *Server) ledgerSize(w http.ResponseWriter, r *http.Request) {
	plain(s, w, r, s.o.Backend.LedgerSize)
}

// sendFile streams what from writes. What fails after the first byte can only be
// told by cutting the connection: the file then lacks its end.
func (s *Server) sendFile(w http.ResponseWriter, r *http.Request, kind string, from func(context.Context, io.Writer) error) {
	if q := readQuery(r); q.err != nil {
		s.fail(w, r, q.err)
		return
	}
	release, err := s.take()
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer release()
	ctx, cancel := context.WithCancel(r.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { // ends with the answer, or ends it at a shutdown
		select {
		case <-s.closing:
			cancel()
		case <-ctx.Done():
		}
	})
	out := &timed{w: w, kind: kind, rc: http.NewResponseController(w), stall: s.o.Stall}
	err = from(ctx, out)
	switch {
	case err == nil:
	case !out.begun:
		s.fail(w, r, err)
	default:
		s.log.Warn("send file", "error", err.Error())
		panic(http.ErrAbortHandler)
	}
}

// timed gives each write its own deadline, so that a reader may take its time
// but not stand still.
type timed struct {
	w     http.ResponseWriter
	kind  string // Content-Type
	rc    *http.ResponseController
	stall time.Duration
	begun bool
}

func (t *timed) Write(b []byte) (int, error) {
	if !t.begun {
		t.begun = true
		t.w.Header().Set("Content-Type", t.kind)
	}
	if err := t.rc.SetWriteDeadline(time.Now().Add(t.stall)); err != nil {
		return 0, err
	}
	return t.w.Write(b)
}
