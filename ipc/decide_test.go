package ipc_test

import (
	"encoding/json"
	"strings"
	"testing"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ipc/ipcserver"
	"gettier.dev/gettierd/ipc/ipctest"
)

func TestDecide(t *testing.T) {
	b := ipctest.New()
	b.Ruling = json.RawMessage(`{"state":"REQUIRE_CONFIRM","allowed":false,"effect":"destroy","risk_score":55,"reason":"removes data","explain":{"nodes":[]}}`)
	path := ipctest.Socket(t)
	ipctest.Serve(t, path, ipcserver.Options{Backend: b})
	c := ipc.New(path, "cli")
	defer c.Close()
	d, err := c.Decide(t.Context(), ipc.Action{Command: "rm -rf data", Cwd: "/shop"})
	if err != nil || d.State != "REQUIRE_CONFIRM" || d.Allowed || d.Effect != "destroy" || d.Risk != 55 || !strings.Contains(string(d.Raw), `"explain"`) {
		t.Errorf("%+v %v", d, err)
	}
}
