package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
)

// load asks the same consequential question again and again until stopped; each
// answer must have been caught, whatever happens to the registry meanwhile.
func (h *house) load(clients int) (stop func() int64) {
	h.t.Helper()
	var wg sync.WaitGroup
	var n atomic.Int64
	end := make(chan struct{})
	for i := range clients {
		a := h.agent(h.project)
		wg.Go(func() {
			tg := tongues[i%len(tongues)]
			for k := 0; !isClosed(end); k++ {
				r, err := a.do("POST", tg.path, tg.body(k%2 == 0, false, tg.user(fmt.Sprintf("%s (%d, %d)", ticket, i, k))))
				if err != nil || r.status != 200 || r.err != nil || r.decision() != "caught" {
					h.t.Errorf("under load: %d %q %v %v %.300s", r.status, r.decision(), err, r.err, r.body)
					return
				}
				n.Add(1)
			}
		})
	}
	return func() int64 {
		close(end)
		wg.Wait()
		return n.Load()
	}
}

// renameInto writes as an editor that never shows a half file.
func renameInto(t *testing.T, path, text string) {
	t.Helper()
	tmp := filepath.Join(filepath.Dir(path), ".sensors.yaml.swp~")
	if err := os.WriteFile(tmp, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(tmp, path); err != nil {
		t.Fatal(err)
	}
}

// writeInPlace writes in several steps, the file emptied first.
func writeInPlace(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, part := range []string{text[:len(text)/3], text[len(text)/3 : len(text)/2], text[len(text)/2:]} {
		if _, err := f.WriteString(part); err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
	}
}

// backupAndNew writes as an editor that moves the old file away first.
func backupAndNew(t *testing.T, path, text string) {
	t.Helper()
	if err := os.Rename(path, path+"~"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path + "~"); err != nil {
		t.Fatal(err)
	}
}

func described(text string) string {
	return strings.Replace(sensorsYAML, "Largest request body that the edge lets through", text, 1)
}

// TestE2ERegistryEdits: edits of one's own registry under load. None is lost,
// each has its event, and no request is ever answered without the sensor.
func TestE2ERegistryEdits(t *testing.T) {
	t.Parallel()
	up := newRecorder(t, believer)
	h := newHouse(t, plan{upstream: up.URL, config: "sensors:\n  auto_approve: true\n"})
	ev := h.follow("registry.*")
	first := body[lemma.RegistryLoaded](t, ev.next("the registry of the start", func(e ipc.Entry) bool { return e.Kind == "registry.loaded" }))
	stop := h.load(2)
	c := h.api()
	version := first.Version
	for i, edit := range []func(*testing.T, string, string){renameInto, writeInPlace, backupAndNew, renameInto, writeInPlace} {
		text := described(fmt.Sprintf("edit %d", i))
		edit(t, h.sensors, text)
		e := body[lemma.RegistryLoaded](t, ev.next(fmt.Sprintf("registry.loaded after edit %d", i), func(e ipc.Entry) bool {
			if e.Kind == "registry.rejected" {
				t.Errorf("edit %d: a half file was taken for an edit: %s", i, e.Body)
			}
			return e.Kind == "registry.loaded"
		}))
		if e.Version == version || e.Sensors != 1 || len(e.Pending)+len(e.Changed) > 0 {
			t.Errorf("edit %d: %+v, before %s", i, e, version)
		}
		version = e.Version
		list, err := c.Sensors(t.Context(), ipc.SensorQuery{})
		if err != nil || len(list.Items) != 1 || list.Items[0].Description != fmt.Sprintf("edit %d", i) || list.Items[0].State != ipc.SensorApproved {
			t.Errorf("edit %d: %+v %v", i, list.Items, err)
		}

		// A broken file in between: refused with its place, the good one stays.
		broken := strings.Replace(text, "    effects: none\n", "    effects: nnone\n", 1)
		edit(t, h.sensors, broken)
		r := body[lemma.RegistryRejected](t, ev.next(fmt.Sprintf("registry.rejected after edit %d", i), func(e ipc.Entry) bool { return e.Kind == "registry.rejected" }))
		if r.File != h.sensors || r.Line != 6 || r.Column < 5 || !strings.Contains(r.Reason, "nnone") || r.Live != version {
			t.Errorf("edit %d: rejected %+v", i, r)
		}
		st, err := c.Status(t.Context())
		if err != nil || st.Registry.Sensors != 1 || st.Registry.Broken == 0 && len(st.Registry.Problems) != 1 {
			t.Errorf("edit %d: status %+v %v", i, st.Registry, err)
		}
		if out := h.must("status"); !strings.Contains(out, "nnone") {
			t.Errorf("edit %d: gettier status does not say what is wrong:\n%s", i, out)
		}
	}
	// Gone for a moment or for good: what was approved stays in force.
	if err := os.Remove(h.sensors); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the removal is seen", func() bool {
		list, err := c.Sensors(t.Context(), ipc.SensorQuery{})
		return err == nil && len(list.Items) == 1 && list.Items[0].State == ipc.SensorRemoved && list.Items[0].InForce
	})
	renameInto(t, h.sensors, described("back again"))
	ev.next("registry.loaded after the file came back", func(e ipc.Entry) bool {
		var b lemma.RegistryLoaded
		return e.Kind == "registry.loaded" && strings.Contains(string(e.Body), `"sensors":1`) && body[lemma.RegistryLoaded](t, e).Version != b.Version
	})
	if n := stop(); n < 5 {
		t.Errorf("only %d requests while the registry was edited", n)
	}
	h.verified()
}

// TestE2ERegistryPinned: without auto_approve an edit changes nothing until a
// person approves it: a weakened, renamed or removed sensor goes on measuring as
// approved, a new one does not measure yet.
func TestE2ERegistryPinned(t *testing.T) {
	t.Parallel()
	up := newRecorder(t, believer)
	h := newHouse(t, plan{upstream: up.URL})
	a := h.agent(h.project)
	c := h.api()
	state := func(want string) func() bool {
		return func() bool {
			list, err := c.Sensors(t.Context(), ipc.SensorQuery{})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range list.Items {
				if s.ID == "edge.limit" {
					return s.State == want && s.InForce
				}
			}
			return false
		}
	}
	caught := func(when string) {
		t.Helper()
		r := a.post(t, chatTongue.path, chatTongue.body(false, false, chatTongue.user(ticket+" "+when)))
		if r.status != 200 || r.decision() != "caught" {
			t.Errorf("%s: %d %q", when, r.status, r.decision())
		}
	}
	caught("as approved")
	weak := strings.Replace(sensorsYAML, "[cat, edge.conf]", "[echo, 'limit = 100m']", 1)
	for _, edit := range []func(*testing.T, string, string){renameInto, writeInPlace} {
		edit(t, h.sensors, weak)
		eventually(t, "the weakened sensor is seen", state(ipc.SensorChanged))
		caught("weakened")
		edit(t, h.sensors, strings.Replace(sensorsYAML, "id: edge.limit", "id: other.limit", 1))
		eventually(t, "the renamed sensor is seen", state(ipc.SensorRemoved))
		caught("renamed")
		edit(t, h.sensors, "version: 1\nsensors: []\n")
		eventually(t, "the removed sensor is seen", state(ipc.SensorRemoved))
		caught("removed")
		edit(t, h.sensors, sensorsYAML)
		eventually(t, "the approved sensor is back", state(ipc.SensorApproved))
	}
	// Only a person approves: a program's call is refused, and nothing changes.
	renameInto(t, h.sensors, weak)
	eventually(t, "the weakened sensor is seen", state(ipc.SensorChanged))
	if out, errs, code := h.gettier("sensors", "approve", "edge.limit", "--yes"); code != 4 {
		t.Errorf("a program approved a sensor: exit %d\n%s%s", code, out, errs)
	}
	caught("after a program's approval")
	// The project's own registry is never taken by itself.
	if err := os.Mkdir(filepath.Join(h.project, ".gettier"), 0o700); err != nil {
		t.Fatal(err)
	}
	h.write(filepath.Join(h.project, ".gettier", "sensors.yaml"), weak)
	eventually(t, "the project's registry is seen", func() bool {
		list, err := c.Sensors(t.Context(), ipc.SensorQuery{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list.Items {
			if s.Level == "project/shop" {
				return s.State == ipc.SensorPending && !s.InForce
			}
		}
		return false
	})
	caught("shadowed by a project's registry that nobody approved")
	h.verified()
}

// TestE2EPhrasesAndPremises: a file's own phrases and premises are shown and
// approved under the names that the list gives them.
func TestE2EPhrasesAndPremises(t *testing.T) {
	t.Parallel()
	up := newRecorder(t, believer)
	h := newHouse(t, plan{upstream: up.URL, raw: true})
	first := strings.Index(sensorsYAML, "  - id: ") + len("  - id: ")
	id, _, _ := strings.Cut(sensorsYAML[first:], "\n")
	renameInto(t, h.sensors, sensorsYAML+`matching:
  request_path.size_limits: ["upload ceiling"]
premises:
  - id: deploy.edge
    on_action: { program: deploy }
    claim: "the edge is large enough"
    sensor: `+id+`
    key: limit
    operator: ">="
    value: 20MB
    on_false: hold
    examples: { fires: ["deploy now"], not: ["echo deploy"] }
`)
	c := h.api()
	want := map[string]string{"sensor": "user/" + id, "matching": "user/matching", "premise": "user/premise:deploy.edge"}
	eventually(t, "the file is loaded", func() bool {
		list, err := c.Sensors(t.Context(), ipc.SensorQuery{})
		return err == nil && len(list.Items) == 3
	})
	list, err := c.Sensors(t.Context(), ipc.SensorQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list.Items {
		if s.Qualified != want[s.Kind] || s.State != ipc.SensorPending {
			t.Errorf("%+v, want %s", s, want[s.Kind])
		}
		for _, name := range []string{s.ID, s.Qualified} {
			d, err := c.SensorDiff(t.Context(), name, "")
			if err != nil || d.Qualified != s.Qualified || d.Hash != s.Hash || !strings.Contains(d.Text, "+ ") {
				t.Errorf("the difference of %s: %+v %v", name, d, err)
			}
		}
		if _, err := c.TrySensor(t.Context(), s.Qualified, ipc.SensorTry{}); err == nil {
			t.Errorf("%s was run", s.Qualified)
		}
	}
	if out := h.must("sensors", "diff"); !strings.Contains(out, "upload ceiling") || !strings.Contains(out, "deploy.edge") {
		t.Errorf("gettier sensors diff:\n%s", out)
	}
}
