package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
)

func TestFlagTableTakesDefaultsFromFlagOrUsage(t *testing.T) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.Bool("quiet", false, "print less (or nothing)")
	f.Duration("wait", time.Minute, "time to wait")
	f.String("account", "", "`ID` of a|the account")
	f.StringSlice("names", nil, "`names` to include (default all)")
	want := `
## Output

| Flag | Variable | Meaning | Default |
|---|---|---|---|
| ` + "`--account ID` | `TUNNEL_GATEWAY_ACCOUNT` | ID of a\\|the account |  |" + `
| ` + "`--names names` | `TUNNEL_GATEWAY_NAMES` | names to include | all |" + `
| ` + "`--quiet` | `TUNNEL_GATEWAY_QUIET` | print less (or nothing) | `false` |" + `
| ` + "`--wait duration` | `TUNNEL_GATEWAY_WAIT` | time to wait | `1m0s` |" + `
`
	if diff := cmp.Diff(want, flagTables([]config.Group{{Title: "Output", Flags: f}})); diff != "" {
		t.Errorf("tables (-want +got):\n%s", diff)
	}
}
