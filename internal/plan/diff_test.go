package plan_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

func TestCompare(t *testing.T) {
	c := newCloud(t)
	change, id := fmt.Sprintf(change, c.id), string(c.id)
	const (
		takeover  = " has a configuration that this controller did not write. Set tunnel.existing.takeover in the TunnelConfiguration of the GatewayClass to have it replaced."
		contested = " was changed 3 times within 10 minutes outside the controller, so the controller has stopped writing it. Find the other writer, then pause the Gateway and resume it."
		keeps     = " asks for another tunnel than Tunnel infra.g records. Restore the setting, or ask an administrator to delete the Tunnel object to switch."
	)
	found := note("Found tunnel c.infra.g (" + id + "), which gets the configuration of this Gateway.")
	unpermitted := note("Tunnel "+id+takeover) + change
	for name, test := range map[string]struct {
		manifests, want string
	}{
		"no difference": {compared("old.example.com", "") + c.record(), same},
		"a difference":  {compared("new.example.com", "") + c.record(), change},
		"a difference to the configuration that the controller wrote": {compared("new.example.com", "") + c.written(c.hash), change},
		"an external change": {compared("new.example.com", "") + c.written("sha256:other"),
			note("The configuration of the tunnel was changed outside the controller.") + change},
		"no tunnel": {compared("new.example.com", "") + kubeSystem,
			note("The tunnel does not exist yet. The controller creates it with the name "+tunnel.DefaultClusterID("cluster", string(options.ControllerName))+".infra.g.") + addition},
		"a Tunnel object that records no tunnel":                {compared("new.example.com", "") + object(""), found + change},
		"a tunnel that another one shows the name of":           {compared("new.example.com", "") + kubeSystem + rival(otherTunnel), found + change},
		"a recorded tunnel that is gone, and one of its name":   {compared("new.example.com", "") + object("tunnelID: "+string(goneTunnel)), found + change},
		"a create that was not answered":                        {compared("new.example.com", "") + object("creating: true"), found + change},
		"a deletion that was not answered":                      {compared("new.example.com", "") + object("deleting: true, tunnelID: "+id), change},
		"manifests alone":                                       {compared("new.example.com", ""), note("The manifests have no Tunnel object, so the tunnel counts as new. Add --context to compare with the tunnel of a cluster, or --cluster-id to find the tunnel by its name.") + addition},
		"manifests alone, with a Tunnel object":                 {compared("new.example.com", "") + strings.TrimSuffix(c.record(), kubeSystem), change},
		"manifests alone, with a tunnel to adopt":               {settled("old.example.com", existing(c.id)), same},
		"paused, with a difference":                             {compared("new.example.com", paused) + c.record(), note(tunnel.PausedMessage) + change},
		"paused, without one":                                   {compared("old.example.com", paused) + c.record(), same},
		"paused, without a Tunnel object":                       {compared("new.example.com", paused) + kubeSystem + rival(otherTunnel), found + note(tunnel.PausedMessage) + change},
		"paused and contested":                                  {compared("new.example.com", paused) + object("contested: true, tunnelID: "+id), note(tunnel.PausedMessage) + change},
		"contested":                                             {compared("new.example.com", "") + object("contested: true, tunnelID: "+id), note("The configuration of tunnel "+id+contested) + change},
		"contested, without a difference":                       {compared("old.example.com", "") + object("contested: true, tunnelID: "+id), same},
		"to be adopted":                                         {settled("new.example.com", existing(c.id)) + kubeSystem, unpermitted},
		"to be adopted, without a difference":                   {settled("old.example.com", existing(c.id)) + kubeSystem, same},
		"to be adopted, with a permission":                      {settled("new.example.com", "existing: {id: "+id+", takeover: true}") + kubeSystem, change},
		"adopted, with another configuration":                   {settled("new.example.com", existing(c.id)) + adopting(c.record(), c.id), unpermitted},
		"adopted, with the configuration of the controller":     {settled("new.example.com", existing(c.id)) + adopting(c.written(c.hash), c.id), change},
		"adopted, and a younger Tunnel object that asks for it": {settled("new.example.com", existing(c.id)) + adopting(c.written(c.hash), c.id) + strings.Replace(rival(c.id), "2025", "2026", 1), change},
		"settings with another tunnel":                          {settled("new.example.com", existing(otherTunnel)) + c.record(), note("The setting tunnel.existing"+keeps) + change},
		"settings that adopt no longer":                         {compared("old.example.com", "") + adopting(c.written(c.hash), c.id), note("The setting tunnel.existing"+keeps) + same},
		"a Gateway that is not accepted":                        {refused, "Gateway infra/refused: The Gateway is not accepted, so nothing is pushed: UnsupportedAddress: spec.addresses[0] requests \"192.0.2.1\", but Cloudflare assigns the address of a tunnel. Remove the value.\n"},
		"a Gateway that is being deleted":                       {strings.Replace(compared("new.example.com", ""), "  name: g\n", "  name: g\n  deletionTimestamp: \"2026-01-01T00:00:00Z\"\n", 1) + c.record(), "Gateway infra/g is being deleted, so nothing is pushed.\n"},
		"no Gateway":                                            {teams, "No Gateway uses this controller.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p := planOf(t, test.manifests)
			if err := p.Compare(t.Context(), c.open); err != nil {
				t.Fatal(err)
			}
			wantDiff(t, p, test.want)
			if different := strings.Contains(test.want, "+++"); p.Different() != different {
				t.Errorf("different is %t", p.Different())
			}
		})
	}
	for _, call := range c.Calls() {
		switch call.Op {
		case fake.OpConfiguration, fake.OpTunnel, fake.OpFindTunnel:
		default:
			t.Errorf("it calls %s, which a token with the permission to read may not", call.Op)
		}
		// A person waits for it.
		if call.Priority != provider.PriorityChange {
			t.Errorf("%s has priority %d", call.Op, call.Priority)
		}
	}
}

// A tunnel that was lost is reported, and its successor is new.
func TestCompareALostTunnel(t *testing.T) {
	c := newCloud(t)
	if err := c.DeleteTunnel(t.Context(), c.id); err != nil {
		t.Fatal(err)
	}
	p := planOf(t, compared("new.example.com", "")+c.written(c.hash))
	if err := p.Compare(t.Context(), c.open); err != nil {
		t.Fatal(err)
	}
	wantDiff(t, p, note("Tunnel "+string(c.id)+" was deleted at Cloudflare, and not by the controller. The controller creates a new tunnel with a new address.")+
		note("The tunnel does not exist yet. The controller creates it with the name c.infra.g.")+addition)
}

// The cluster ID of the flags goes before that of the Tunnels.
func TestCompareWithAClusterID(t *testing.T) {
	c := newCloud(t)
	for id, want := range map[string]string{
		"c": note("Found tunnel c.infra.g ("+string(c.id)+"), which gets the configuration of this Gateway.") + fmt.Sprintf(change, c.id),
		"d": note("The tunnel does not exist yet. The controller creates it with the name d.infra.g.") + addition,
	} {
		for name, manifests := range map[string]string{"a cluster": kubeSystem + rival(otherTunnel), "manifests": ""} {
			t.Run(name+" with "+id, func(t *testing.T) {
				chosen := options
				chosen.ClusterID = id
				p, err := plan.Make(t.Context(), read(t, compared("new.example.com", "")+manifests, "-"), chosen, now)
				if err != nil {
					t.Fatal(err)
				}
				if err := p.Compare(t.Context(), c.open); err != nil {
					t.Fatal(err)
				}
				wantDiff(t, p, want)
			})
		}
	}
}

// A difference that the controller would not push is an error.
func TestCompareFails(t *testing.T) {
	c := newCloud(t)
	local, reserved := c.create(t, "local"), c.create(t, "c.infra.another")
	c.SetLocal(local, true)
	const inUse = "The tunnel of Tunnel infra.g is in use by another Gateway. Name another tunnel in tunnel.existing.id."
	for name, test := range map[string]struct{ manifests, want string }{
		"another account": {compared("new.example.com", "") + strings.Replace(c.record(), `accountID: "`+fake.AccountID+`"`, "accountID: theirs", 1),
			"The setting account asks for another tunnel than Tunnel infra.g records. Restore the setting, or ask an administrator to delete the Tunnel object to switch."},
		"a tunnel to adopt that does not exist": {settled("new.example.com", existing(otherTunnel)) + kubeSystem,
			"The tunnel that tunnel.existing.id names does not exist in the account. Correct the ID."},
		"an adopted tunnel that is gone": {settled("new.example.com", existing(goneTunnel)) + adopting(object("tunnelID: "+string(goneTunnel)+", configuration: {hash: h}"), goneTunnel),
			"The tunnel that tunnel.existing.id names does not exist in the account. Correct the ID."},
		"a locally managed tunnel": {settled("new.example.com", existing(local)) + kubeSystem,
			"Tunnel local (" + string(local) + ") is locally managed: its connectors read their configuration from a file, so the controller does not use it. Migrate it to remote management, rename it, or name another one in tunnel.existing.id."},
		"a recorded tunnel that is locally managed": {compared("new.example.com", "") + object("tunnelID: "+string(local)),
			"The tunnel is locally managed: its connectors read their configuration from a file, so the controller does not use it. Migrate it to remote management in the Cloudflare dashboard."},
		"a tunnel that is used": {settled("new.example.com", existing(c.id)) + kubeSystem + rival(c.id), inUse},
		"a tunnel of another controller": {settled("new.example.com", existing(c.id)) + kubeSystem +
			strings.Replace(rival(c.id), "controllerName: tunnelgateway.dev/controller", "controllerName: example.com/other", 1), inUse},
		"a tunnel of another Gateway": {settled("new.example.com", existing(reserved)) + kubeSystem + rival(otherTunnel),
			"Tunnel " + string(reserved) + " was created for another Gateway of this cluster. Name another tunnel in tunnel.existing.id."},
		"a Tunnel object of another cluster": {compared("new.example.com", "") + strings.Replace(c.record(), "clusterUID: cluster", "clusterUID: restored", 1),
			"Tunnel infra.g was created in another cluster (UID restored), so its tunnel is not touched. Delete the Tunnel object if this cluster replaces the other one."},
		"a Tunnel object of another controller": {compared("new.example.com", "") + strings.Replace(c.record(), "controllerName: tunnelgateway.dev/controller", "controllerName: example.com/other", 1),
			"Tunnel infra.g is for Gateway infra/g of controller example.com/other and is not used. Delete it to let this Gateway have a Tunnel."},
		"a deletion under way": {compared("new.example.com", "") + object("deleting: true, tunnelID: "+string(goneTunnel)),
			"The tunnel of an earlier Gateway of this name is being deleted."},
	} {
		t.Run(name, func(t *testing.T) {
			p := planOf(t, test.manifests)
			err := p.Compare(t.Context(), c.open)
			if want := "Gateway infra/g: " + test.want; err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
			wantDiff(t, p, "Gateway infra/g: not compared\n")
			if p.Different() {
				t.Error("it is different")
			}
		})
	}
}

// Each Tunnel is read with the token of its own account.
func TestCompareOpensTheAccount(t *testing.T) {
	c := newCloud(t)
	own := strings.Replace(c.record(), `accountID: "`+fake.AccountID+`"`, "accountID: theirs\n  credentials: {name: own}", 1)
	withAccount := strings.Replace(compared("old.example.com", ""), "spec: {}", "spec: {account: {accountID: theirs, apiTokenSecretRef: {name: own}}}", 1)
	withoutFlags := options
	withoutFlags.Account = credentials.Default{}
	for name, test := range map[string]struct {
		manifests string
		options   plan.Options
		want      string
	}{
		"of the flags":                {compared("old.example.com", "") + c.record(), options, "account " + fake.AccountID + ", token, Secret /"},
		"of the class":                {withAccount + own, options, "account theirs, , Secret tunnel-gateway/own"},
		"of the class, without flags": {withAccount + own, withoutFlags, "account theirs, , Secret tunnel-gateway/own"},
		"none":                        {compared("old.example.com", "") + kubeSystem, withoutFlags, "account , , Secret /"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := plan.Make(t.Context(), read(t, test.manifests, "-"), test.options, now)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			err = p.Compare(t.Context(), func(ctx context.Context, from credentials.Source) (provider.Provider, error) {
				got = fmt.Sprintf("account %s, %s, Secret %s", from.Account, from.Token, from.Secret)
				return c.open(ctx, from)
			})
			if err != nil || got != test.want {
				t.Errorf("opened %q (%v), want %q", got, err, test.want)
			}
		})
	}
}

// A Gateway that cannot be read hides no other, and no call is made for nothing.
func TestCompareGoesOn(t *testing.T) {
	c := newCloud(t)
	named := func(name, hostname string) string {
		g := strings.Replace(compared(hostname, ""), "  name: g\n", "  name: "+name+"\n", 1)
		return strings.SplitN(g, "---", 2)[0] + "---" + strings.NewReplacer("infra.g", "infra."+name, "name: g}", "name: "+name+"}").Replace(strings.TrimSuffix(c.record(), kubeSystem))
	}
	p := planOf(t, compared("new.example.com", "")+c.record(), named("a", "a.example.com"), named("z", "z.example.com"))
	broken := errors.New("broken")
	c.Fail(fake.OpConfiguration, broken)
	err := p.Compare(t.Context(), c.open)
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "Gateway infra/a: ") || strings.Contains(err.Error(), "infra/g") {
		t.Errorf("the error is %v", err)
	}
	if p.Gateways[0].Diff != nil || p.Gateways[1].Diff == nil || p.Gateways[2].Diff == nil || !p.Different() {
		t.Errorf("the differences are %+v", p.Gateways)
	}
	if calls := c.Calls(); len(calls) != 3 {
		t.Errorf("%d calls, want 3", len(calls))
	}
}

func TestCompareEndsWithItsContext(t *testing.T) {
	c := newCloud(t)
	one := compared("new.example.com", "") + c.record()
	two := strings.SplitN(strings.Replace(one, "  name: g\n", "  name: h\n", 1), "---", 2)[0]
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := planOf(t, one, two).Compare(ctx, c.open); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "infra/h") {
		t.Errorf("the error is %v", err)
	}
}

func TestJSONOfDifferences(t *testing.T) {
	c := newCloud(t)
	p := planOf(t, compared("new.example.com", "")+c.record())
	if got := decoded(t, p)["gateways"].([]any)[0].(map[string]any); got["diff"] != nil {
		t.Errorf("without a comparison there is %v", got["diff"])
	}
	for name, test := range map[string]struct {
		manifests string
		want      map[string]any
	}{
		"a difference":  {compared("new.example.com", "") + c.record(), map[string]any{"tunnel": string(c.id), "version": 1.0, "different": true, "unified": fmt.Sprintf(change, c.id), "notes": []any{}}},
		"no difference": {compared("old.example.com", "") + c.record(), map[string]any{"tunnel": string(c.id), "version": 1.0, "different": false, "unified": "", "notes": []any{}}},
		"a new tunnel": {compared("new.example.com", "") + kubeSystem, map[string]any{"tunnel": "", "version": 0.0, "different": true, "unified": addition,
			"notes": []any{"The tunnel does not exist yet. The controller creates it with the name " + tunnel.DefaultClusterID("cluster", string(options.ControllerName)) + ".infra.g."}}},
		"nothing to push": {refused, map[string]any{"tunnel": "", "version": 0.0, "different": false, "unified": "",
			"notes": []any{"The Gateway is not accepted, so nothing is pushed: UnsupportedAddress: spec.addresses[0] requests \"192.0.2.1\", but Cloudflare assigns the address of a tunnel. Remove the value."}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := planOf(t, test.manifests)
			if err := p.Compare(t.Context(), c.open); err != nil {
				t.Fatal(err)
			}
			got := decoded(t, p)["gateways"].([]any)[0].(map[string]any)["diff"]
			if diff := cmp.Diff(any(test.want), got); diff != "" {
				t.Errorf("the field differs (-want +got):\n%s", diff)
			}
		})
	}
}
