package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
)

// TestTables: a default is the flag's own, or the one that its usage tells, and
// is said once.
func TestTables(t *testing.T) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.Bool("quiet", false, "say less (or nothing)")
	f.Duration("wait", time.Minute, "how long it waits")
	f.String("account", "", "`ID` of a|the account")
	f.StringSlice("names", nil, "`names` of those that count (default all)")
	want := `
## Things

| Flag | Variable | Meaning | Default |
|---|---|---|---|
| ` + "`--account ID` | `TUNNEL_GATEWAY_ACCOUNT` | ID of a\\|the account |  |" + `
| ` + "`--names names` | `TUNNEL_GATEWAY_NAMES` | names of those that count | all |" + `
| ` + "`--quiet` | `TUNNEL_GATEWAY_QUIET` | say less (or nothing) | `false` |" + `
| ` + "`--wait duration` | `TUNNEL_GATEWAY_WAIT` | how long it waits | `1m0s` |" + `
`
	if diff := cmp.Diff(want, tables([]config.Group{{Title: "Things", Flags: f}})); diff != "" {
		t.Errorf("tables (-want +got):\n%s", diff)
	}
}
