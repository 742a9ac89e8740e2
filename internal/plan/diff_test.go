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

func TestCompareWithTheTunnel(t *testing.T) {
	c := newAccount(t)
	change, id := fmt.Sprintf(change, c.id), string(c.id)
	const (
		takeover  = " has a configuration that this controller did not write. Set tunnel.existing.takeover in the GatewayClass's TunnelConfiguration to let the controller replace it."
		contested = " 3 times within 10 minutes, so the controller has stopped writing it. Stop the other writer, then pause the Gateway and resume it."
		keeps     = " selects a different tunnel than Tunnel infra.g records. Restore the setting, or ask an administrator to delete the Tunnel object to switch."
	)
	found := note("Tunnel c.infra.g (" + id + ") has the name of this Gateway's tunnel, so the controller uses it and replaces its configuration.")
	unpermitted := note("Tunnel "+id+takeover) + change
	for name, test := range map[string]struct {
		manifests, want string
	}{
		"no difference": {gatewayFor("old.example.com", "") + c.recorded(), same},
		"a difference":  {gatewayFor("new.example.com", "") + c.recorded(), change},
		"a difference from the configuration that the controller wrote": {gatewayFor("new.example.com", "") + c.written(c.hash), change},
		"an external change": {gatewayFor("new.example.com", "") + c.written("sha256:other"),
			note("An external change replaced the tunnel configuration.") + change},
		"no tunnel": {gatewayFor("new.example.com", "") + kubeSystem,
			note("The tunnel does not exist yet. The controller creates it with the name "+tunnel.DefaultClusterID("cluster", string(options.ControllerName))+".infra.g.") + addition},
		"a Tunnel object without a tunnel ID":                        {gatewayFor("new.example.com", "") + tunnelObject(""), found + change},
		"a cluster ID from the Tunnel object of another Gateway":     {gatewayFor("new.example.com", "") + kubeSystem + otherTunnelObject(otherTunnel), found + change},
		"a missing recorded tunnel and a tunnel with its name":       {gatewayFor("new.example.com", "") + tunnelObject("tunnelID: "+string(goneTunnel)), found + change},
		"an unanswered request to create the tunnel":                 {gatewayFor("new.example.com", "") + tunnelObject("creating: true"), found + change},
		"an unanswered request to delete the tunnel":                 {gatewayFor("new.example.com", "") + tunnelObject("deleting: true, tunnelID: "+id), change},
		"manifests without a cluster":                                {gatewayFor("new.example.com", ""), note("The manifests contain no Tunnel object, so the tunnel counts as new. Add --context to compare with a cluster's tunnel, or --cluster-id to find the tunnel by its name.") + addition},
		"manifests without a cluster, with a Tunnel object":          {gatewayFor("new.example.com", "") + strings.TrimSuffix(c.recorded(), kubeSystem), change},
		"manifests without a cluster, with a tunnel to adopt":        {gatewayWithTunnelSettings("old.example.com", existing(c.id)), same},
		"paused, with a difference":                                  {gatewayFor("new.example.com", paused) + c.recorded(), note(tunnel.PausedMessage) + change},
		"paused, without a difference":                               {gatewayFor("old.example.com", paused) + c.recorded(), same},
		"paused, without a Tunnel object":                            {gatewayFor("new.example.com", paused) + kubeSystem + otherTunnelObject(otherTunnel), found + note(tunnel.PausedMessage) + change},
		"paused and contested":                                       {gatewayFor("new.example.com", paused) + tunnelObject("contested: true, tunnelID: "+id), note(tunnel.PausedMessage) + change},
		"contested":                                                  {gatewayFor("new.example.com", "") + tunnelObject("contested: true, tunnelID: "+id), note("External changes replaced the configuration of tunnel "+id+contested) + change},
		"contested, without a difference":                            {gatewayFor("old.example.com", "") + tunnelObject("contested: true, tunnelID: "+id), same},
		"a tunnel to adopt":                                          {gatewayWithTunnelSettings("new.example.com", existing(c.id)) + kubeSystem, unpermitted},
		"a tunnel to adopt, without a difference":                    {gatewayWithTunnelSettings("old.example.com", existing(c.id)) + kubeSystem, same},
		"a tunnel to adopt, with takeover":                           {gatewayWithTunnelSettings("new.example.com", "existing: {id: "+id+", takeover: true}") + kubeSystem, change},
		"an adopted tunnel with the configuration of another writer": {gatewayWithTunnelSettings("new.example.com", existing(c.id)) + adopting(c.recorded(), c.id), unpermitted},
		"an adopted tunnel with the configuration of the controller": {gatewayWithTunnelSettings("new.example.com", existing(c.id)) + adopting(c.written(c.hash), c.id), change},
		"an adopted tunnel that a younger Tunnel object also adopts": {gatewayWithTunnelSettings("new.example.com", existing(c.id)) + adopting(c.written(c.hash), c.id) + strings.Replace(otherTunnelObject(c.id), "2025", "2026", 1), change},
		"settings with the ID of another tunnel":                     {gatewayWithTunnelSettings("new.example.com", existing(otherTunnel)) + c.recorded(), note("The setting tunnel.existing"+keeps) + change},
		"settings that no longer adopt the tunnel":                   {gatewayFor("old.example.com", "") + adopting(c.written(c.hash), c.id), note("The setting tunnel.existing"+keeps) + same},
		"a Gateway that is not accepted":                             {rejected, "Gateway infra/rejected: The Gateway is not accepted, so the controller does not push its configuration: UnsupportedAddress: spec.addresses[0] requests \"192.0.2.1\", but Cloudflare assigns the address of a tunnel. Remove the value.\n"},
		"a Gateway that is being deleted":                            {strings.Replace(gatewayFor("new.example.com", ""), "  name: g\n", "  name: g\n  deletionTimestamp: \"2026-01-01T00:00:00Z\"\n", 1) + c.recorded(), "Gateway infra/g: The Gateway is being deleted, so the controller does not push its configuration.\n"},
		"no Gateway":                                                 {teams, "No Gateway uses this controller.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p := planOf(t, test.manifests)
			if err := p.Compare(t.Context(), c.open); err != nil {
				t.Fatal(err)
			}
			wantDiff(t, p, test.want)
			if different := strings.Contains(test.want, "+++"); p.HasChanges() != different {
				t.Errorf("HasChanges = %t, want %t", p.HasChanges(), different)
			}
		})
	}
	for _, call := range c.Calls() {
		switch call.Op {
		case fake.OpConfiguration, fake.OpTunnel, fake.OpFindTunnel:
		default:
			t.Errorf("Compare calls %s, which requires the permission to edit", call.Op)
		}
		// A user waits for the result.
		if call.Priority != provider.PriorityChange {
			t.Errorf("priority of %s = %d, want %d", call.Op, call.Priority, provider.PriorityChange)
		}
	}
}

func TestCompareReportsATunnelThatWasDeletedAtCloudflare(t *testing.T) {
	c := newAccount(t)
	if err := c.DeleteTunnel(t.Context(), c.id); err != nil {
		t.Fatal(err)
	}
	p := planOf(t, gatewayFor("new.example.com", "")+c.written(c.hash))
	if err := p.Compare(t.Context(), c.open); err != nil {
		t.Fatal(err)
	}
	wantDiff(t, p, note("Another client deleted tunnel "+string(c.id)+" at Cloudflare. The controller creates a new tunnel, which has a new address.")+
		note("The tunnel does not exist yet. The controller creates it with the name c.infra.g.")+addition)
}

// The cluster ID in the flags takes precedence over the ID in the Tunnels.
func TestCompareFindsATunnelByNameAndClusterID(t *testing.T) {
	c := newAccount(t)
	for id, want := range map[string]string{
		"c": note("Tunnel c.infra.g ("+string(c.id)+") has the name of this Gateway's tunnel, so the controller uses it and replaces its configuration.") + fmt.Sprintf(change, c.id),
		"d": note("The tunnel does not exist yet. The controller creates it with the name d.infra.g.") + addition,
	} {
		for name, manifests := range map[string]string{"a cluster": kubeSystem + otherTunnelObject(otherTunnel), "manifests": ""} {
			t.Run(name+" with "+id, func(t *testing.T) {
				chosen := options
				chosen.ClusterID = id
				p, err := plan.Build(t.Context(), read(t, gatewayFor("new.example.com", "")+manifests, "-"), chosen, now)
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

func TestCompareFailsForAnUnusableTunnel(t *testing.T) {
	c := newAccount(t)
	local, reserved := c.create(t, "local"), c.create(t, "c.infra.another")
	c.SetLocal(local, true)
	const inUse = "Another Gateway uses the tunnel of Tunnel infra.g. Set tunnel.existing.id to another tunnel."
	for name, test := range map[string]struct{ manifests, want string }{
		"another account": {gatewayFor("new.example.com", "") + strings.Replace(c.recorded(), `accountID: "`+fake.AccountID+`"`, "accountID: theirs", 1),
			"The setting account selects a different tunnel than Tunnel infra.g records. Restore the setting, or ask an administrator to delete the Tunnel object to switch."},
		"a tunnel to adopt that does not exist": {gatewayWithTunnelSettings("new.example.com", existing(otherTunnel)) + kubeSystem,
			"The tunnel that tunnel.existing.id names does not exist in the Cloudflare account. Correct the ID."},
		"an adopted tunnel that was deleted": {gatewayWithTunnelSettings("new.example.com", existing(goneTunnel)) + adopting(tunnelObject("tunnelID: "+string(goneTunnel)+", configuration: {hash: h}"), goneTunnel),
			"The tunnel that tunnel.existing.id names does not exist in the Cloudflare account. Correct the ID."},
		"a locally managed tunnel": {gatewayWithTunnelSettings("new.example.com", existing(local)) + kubeSystem,
			"Tunnel local (" + string(local) + ") is locally managed: its connectors read their configuration from a file, so the controller does not use it. Migrate it to remote management, rename it, or set tunnel.existing.id to another tunnel."},
		"a recorded tunnel that is locally managed": {gatewayFor("new.example.com", "") + tunnelObject("tunnelID: "+string(local)),
			"The tunnel is locally managed: its connectors read their configuration from a file, so the controller does not use it. Migrate it to remote management in the Cloudflare dashboard."},
		"a tunnel that another Gateway uses": {gatewayWithTunnelSettings("new.example.com", existing(c.id)) + kubeSystem + otherTunnelObject(c.id), inUse},
		"a tunnel of another controller": {gatewayWithTunnelSettings("new.example.com", existing(c.id)) + kubeSystem +
			strings.Replace(otherTunnelObject(c.id), "controllerName: tunnelgateway.dev/controller", "controllerName: example.com/other", 1), inUse},
		"a tunnel of another Gateway": {gatewayWithTunnelSettings("new.example.com", existing(reserved)) + kubeSystem + otherTunnelObject(otherTunnel),
			"Tunnel " + string(reserved) + " was created for another Gateway of this cluster. Set tunnel.existing.id to another tunnel."},
		"a Tunnel object of another cluster": {gatewayFor("new.example.com", "") + strings.Replace(c.recorded(), "clusterUID: cluster", "clusterUID: restored", 1),
			"Tunnel infra.g was created in another cluster (UID restored), so the controller does not change its tunnel. Delete the Tunnel object if this cluster replaces the other cluster."},
		"a Tunnel object of another controller": {gatewayFor("new.example.com", "") + strings.Replace(c.recorded(), "controllerName: tunnelgateway.dev/controller", "controllerName: example.com/other", 1),
			"Tunnel infra.g belongs to Gateway infra/g of controller example.com/other, so this Gateway cannot use it. Delete the Tunnel object; the controller then creates a new one."},
		"a tunnel that is being deleted": {gatewayFor("new.example.com", "") + tunnelObject("deleting: true, tunnelID: "+string(goneTunnel)),
			"The controller is deleting the tunnel of a previous Gateway with this name."},
	} {
		t.Run(name, func(t *testing.T) {
			p := planOf(t, test.manifests)
			err := p.Compare(t.Context(), c.open)
			if want := "Gateway infra/g: " + test.want; err == nil || err.Error() != want {
				t.Errorf("Compare = %v, want %s", err, want)
			}
			wantDiff(t, p, "Gateway infra/g: not compared\n")
			if p.HasChanges() {
				t.Error("HasChanges = true for a Gateway that was not compared")
			}
		})
	}
}

func TestCompareUsesTheAccountOfEachTunnel(t *testing.T) {
	c := newAccount(t)
	own := strings.Replace(c.recorded(), `accountID: "`+fake.AccountID+`"`, "accountID: theirs\n  credentials: {name: own}", 1)
	withAccount := strings.Replace(gatewayFor("old.example.com", ""), "spec: {}", "spec: {account: {accountID: theirs, apiTokenSecretRef: {name: own}}}", 1)
	withoutFlags := options
	withoutFlags.Account = credentials.Default{}
	for name, test := range map[string]struct {
		manifests string
		options   plan.Options
		want      string
	}{
		"account of the flags":                {gatewayFor("old.example.com", "") + c.recorded(), options, "account " + fake.AccountID + ", token, Secret /"},
		"account of the class":                {withAccount + own, options, "account theirs, , Secret tunnel-gateway/own"},
		"account of the class, without flags": {withAccount + own, withoutFlags, "account theirs, , Secret tunnel-gateway/own"},
		"no account":                          {gatewayFor("old.example.com", "") + kubeSystem, withoutFlags, "account , , Secret /"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := plan.Build(t.Context(), read(t, test.manifests, "-"), test.options, now)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			err = p.Compare(t.Context(), func(ctx context.Context, from credentials.Source) (provider.Provider, error) {
				got = fmt.Sprintf("account %s, %s, Secret %s", from.Account, from.Token, from.Secret)
				return c.open(ctx, from)
			})
			if err != nil || got != test.want {
				t.Errorf("opened account = %q (%v), want %q", got, err, test.want)
			}
		})
	}
}

func TestCompareContinuesAfterAnError(t *testing.T) {
	c := newAccount(t)
	named := func(name, hostname string) string {
		g := strings.Replace(gatewayFor(hostname, ""), "  name: g\n", "  name: "+name+"\n", 1)
		return strings.SplitN(g, "---", 2)[0] + "---" + strings.NewReplacer("infra.g", "infra."+name, "name: g}", "name: "+name+"}").Replace(strings.TrimSuffix(c.recorded(), kubeSystem))
	}
	p := planOf(t, gatewayFor("new.example.com", "")+c.recorded(), named("a", "a.example.com"), named("z", "z.example.com"))
	failure := errors.New("failure")
	c.Fail(fake.OpConfiguration, failure)
	err := p.Compare(t.Context(), c.open)
	if !errors.Is(err, failure) || !strings.HasPrefix(err.Error(), "Gateway infra/a: ") || strings.Contains(err.Error(), "infra/g") {
		t.Errorf("Compare = %v", err)
	}
	if p.Gateways[0].Diff != nil || p.Gateways[1].Diff == nil || p.Gateways[2].Diff == nil || !p.HasChanges() {
		t.Errorf("Gateways = %+v, want differences for the last two", p.Gateways)
	}
	if calls := c.Calls(); len(calls) != 3 {
		t.Errorf("%d calls, want 3", len(calls))
	}
}

func TestCompareEndsWhenTheContextIsCanceled(t *testing.T) {
	c := newAccount(t)
	one := gatewayFor("new.example.com", "") + c.recorded()
	two := strings.SplitN(strings.Replace(one, "  name: g\n", "  name: h\n", 1), "---", 2)[0]
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := planOf(t, one, two).Compare(ctx, c.open); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "infra/h") {
		t.Errorf("Compare = %v", err)
	}
}

func TestDiffInJSON(t *testing.T) {
	c := newAccount(t)
	p := planOf(t, gatewayFor("new.example.com", "")+c.recorded())
	if got := decoded(t, p)["gateways"].([]any)[0].(map[string]any); got["diff"] != nil {
		t.Errorf("before Compare, diff = %v, want none", got["diff"])
	}
	for name, test := range map[string]struct {
		manifests string
		want      map[string]any
	}{
		"a difference":  {gatewayFor("new.example.com", "") + c.recorded(), map[string]any{"tunnel": string(c.id), "version": 1.0, "different": true, "unified": fmt.Sprintf(change, c.id), "routes": "", "notes": []any{}}},
		"no difference": {gatewayFor("old.example.com", "") + c.recorded(), map[string]any{"tunnel": string(c.id), "version": 1.0, "different": false, "unified": "", "routes": "", "notes": []any{}}},
		"a new tunnel": {gatewayFor("new.example.com", "") + kubeSystem, map[string]any{"tunnel": "", "version": 0.0, "different": true, "unified": addition, "routes": "",
			"notes": []any{"The tunnel does not exist yet. The controller creates it with the name " + tunnel.DefaultClusterID("cluster", string(options.ControllerName)) + ".infra.g."}}},
		"a Gateway that is not accepted": {rejected, map[string]any{"tunnel": "", "version": 0.0, "different": false, "unified": "", "routes": "",
			"notes": []any{"The Gateway is not accepted, so the controller does not push its configuration: UnsupportedAddress: spec.addresses[0] requests \"192.0.2.1\", but Cloudflare assigns the address of a tunnel. Remove the value."}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := planOf(t, test.manifests)
			if err := p.Compare(t.Context(), c.open); err != nil {
				t.Fatal(err)
			}
			got := decoded(t, p)["gateways"].([]any)[0].(map[string]any)["diff"]
			if diff := cmp.Diff(any(test.want), got); diff != "" {
				t.Errorf("diff differs (-want +got):\n%s", diff)
			}
		})
	}
}
