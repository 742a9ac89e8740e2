package adoption

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// The error says what is missing, also for a hostname that a Gateway serves.
func TestApplicationsThatCannotBeAdoptedAreExplained(t *testing.T) {
	demand := func(hostname string) access.Demand {
		return access.Demand{Hostname: hostname, Permitted: true, Policies: []v1alpha1.PolicyName{"employees"}}
	}
	invalid := demand("invalid.example.com")
	invalid.Invalid = &settings.Problem{Message: "listener admin does not exist."}
	unknown := demand("unknown.example.com")
	unknown.Policies = []v1alpha1.PolicyName{"contractors"}
	notPermitted := demand("denied.example.com")
	notPermitted.Permitted = false
	g := AccessGateway{
		Gateway: access.Gateway{
			NamespacedName: types.NamespacedName{Namespace: "infra", Name: "one"}, Class: "tunnel", State: ownership.Accepted, HasTunnel: true,
			Demands:   []access.Demand{demand("a.example.com"), demand("*.preview.example.com"), invalid, unknown, notPermitted},
			Hostnames: []access.Hostname{{Name: "a.example.com"}, {Name: "open.example.com"}},
		},
		Settings: settings.Applications{Mode: v1alpha1.ApplicationsManaged, Catalogue: map[v1alpha1.PolicyName]string{"employees": "id"}},
	}
	change := func(change func(*AccessGateway)) AccessGateway {
		changed := g
		change(&changed)
		return changed
	}
	const nothing = "open.example.com: Gateway infra/one serves the hostname, but nothing demands its protection: add an entry with policies or an AccessPolicy first"
	for name, test := range map[string]struct {
		gateway AccessGateway
		name    string
		want    string
	}{
		"a demanded hostname":           {g, "A.example.com.", ""},
		"the hostname of a wildcard":    {g, "x.preview.example.com", "x.preview.example.com: its application is the one of the wildcard; adopt '*.preview.example.com'"},
		"a hostname without a demand":   {g, "open.example.com", nothing},
		"demands that cannot be read":   {change(func(g *AccessGateway) { g.DemandsUnknown = true }), "open.example.com", "open.example.com: the AccessPolicies for Gateway infra/one cannot be read, so it is not known whether it demands an application"},
		"another hostname":              {g, "aa.example.com", "aa.example.com: no Gateway demands an application with this hostname; demand the protection first; did you mean a.example.com?"},
		"a demand that is not valid":    {g, "invalid.example.com", "invalid.example.com: Gateway infra/one: listener admin does not exist"},
		"a policy without an ID":        {g, "unknown.example.com", "unknown.example.com: Gateway infra/one: policy contractors is not in spec.access.policies of GatewayClass tunnel"},
		"a hostname without permission": {g, "denied.example.com", "denied.example.com: Gateway infra/one: the annotation tunnelgateway.dev/hostnames of the namespace whose listener claims the hostname does not permit it"},
		"applications by hand":          {change(func(g *AccessGateway) { g.Settings.Mode = "" }), "a.example.com", "a.example.com: Gateway infra/one: spec.access.applications of GatewayClass tunnel is not Managed"},
		"a paused Gateway":              {change(func(g *AccessGateway) { g.State = ownership.Frozen }), "a.example.com", "a.example.com: Gateway infra/one: it is paused, or its Tunnel is Blocked, so the controller changes no application for it"},
		"a Gateway without a Tunnel":    {change(func(g *AccessGateway) { g.HasTunnel = false }), "a.example.com", "a.example.com: Gateway infra/one: it is not accepted or has no Tunnel, so the controller changes no application for it; see its conditions"},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := SelectApplications([]AccessGateway{test.gateway}, []string{test.name})
			switch {
			case test.want == "" && (err != nil || len(found) != 1 || found[0].Hostname != "a.example.com"):
				t.Errorf("got %v, %v, want a.example.com", found, err)
			case test.want != "" && (err == nil || err.Error() != test.want):
				t.Errorf("error = %v\nwant    %s", err, test.want)
			}
		})
	}
}
