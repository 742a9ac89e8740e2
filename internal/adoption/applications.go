package adoption

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/hostnames"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/internal/suggest"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// ApplicationPermission is what the administrator's API token needs to read applications.
const ApplicationPermission = "Access: Apps and Policies Read"

// AccessGateway is a Gateway that this controller manages, as far as applications are concerned.
type AccessGateway struct {
	access.Gateway
	// Settings are its GatewayClass's.
	Settings settings.Applications
	// AccountID is the Cloudflare account that owns the tunnel and the applications.
	AccountID string
}

// WantedApplication is a demand for an application, with the Gateway.
type WantedApplication struct {
	access.Demand
	Gateway *AccessGateway
}

// Application is a hostname with the application that protects it. Its JSON encoding is
// stable.
type Application struct {
	Gateway  string `json:"gateway"`
	Hostname string `json:"hostname"`
	// ID, Name and AUDTag identify the application; empty if there is none.
	ID     provider.ApplicationID `json:"id,omitempty"`
	Name   string                 `json:"name,omitempty"`
	AUDTag string                 `json:"audTag,omitempty"`
	// Policies are the application's reusable policies, and OtherPolicies counts
	// the others. The controller replaces both by WantedPolicies.
	Policies       []provider.AccessPolicyID `json:"policies,omitempty"`
	OtherPolicies  int                       `json:"otherPolicies,omitempty"`
	WantedPolicies []string                  `json:"wantedPolicies,omitempty"`
	// ChangesPolicies reports whether the adoption changes who can log in.
	ChangesPolicies bool `json:"changesPolicies"`
	// Problem is why the application cannot be adopted; empty if it can.
	Problem string `json:"problem,omitempty"`
	// Notes tell the administrator what else to know.
	Notes []string `json:"notes,omitempty"`
	// Result is empty while the controller has not processed a request. Message explains it.
	Result  v1alpha1.AdoptionResult `json:"result,omitempty"`
	Message string                  `json:"message,omitempty"`

	gateway types.NamespacedName
}

// applications are Cloudflare Access applications.
var applications = &subject{
	annotation: v1alpha1.AdoptApplicationsAnnotation,
	condition:  conditions.TypeAccessReady, reasons: []conditions.Reason{conditions.ReasonForbidden, conditions.ReasonSettingsConflict},
	requests: func(t *v1alpha1.Tunnel) (all []storedRequest, err error) {
		entries, err := t.RequestedApplicationAdoptions()
		for _, e := range entries {
			all = append(all, storedRequest{key{name: e.Hostname}, e.Requested, e})
		}
		return all, err
	},
	results: func(t *v1alpha1.Tunnel) (all []storedResult) {
		if t.Status.Access == nil {
			return nil
		}
		for _, e := range t.Status.Access.Adoptions {
			all = append(all, storedResult{key{name: e.Hostname}, e.Requested, e.Result, e.Message})
		}
		return all
	},
}

func (a *Application) key() key { return key{name: a.Hostname} }

func (a *Application) gatewayName() types.NamespacedName { return a.gateway }

func (a *Application) entry(requested metav1.Time) any {
	return v1alpha1.ApplicationAdoption{Hostname: a.Hostname, ID: string(a.ID), Requested: requested}
}

func (a *Application) isOpen() bool { return a.Result == "" && a.Message == "" }

func (a *Application) conclude(result v1alpha1.AdoptionResult, message string) {
	a.Result, a.Message = result, message
}

// SelectApplications returns the demands for the hostnames, each with the only Gateway that
// demands an application for it. The error explains for each other hostname why its
// application cannot be adopted.
func SelectApplications(gateways []AccessGateway, names []string) ([]WantedApplication, error) {
	if len(gateways) == 0 {
		return nil, errNoGateway
	}
	var found []WantedApplication
	var errs []error
	for _, name := range canonical(names) {
		w, err := selectApplication(gateways, name)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		found = append(found, w)
	}
	return found, errors.Join(errs...)
}

func selectApplication(gateways []AccessGateway, name string) (WantedApplication, error) {
	var found []WantedApplication
	var names, all []string
	for i := range gateways {
		g := &gateways[i]
		for _, d := range g.Demands {
			if d.Hostname == name {
				found, names = append(found, WantedApplication{d, g}), append(names, g.String())
			}
			all = append(all, d.Hostname)
		}
	}
	switch len(found) {
	case 0:
		return WantedApplication{}, notDemanded(gateways, name, all)
	case 1:
	default:
		return WantedApplication{}, fmt.Errorf("several Gateways demand an application for the hostname: %s; select one with --gateway", listNames(names))
	}
	if problem := found[0].problem(); problem != "" {
		return WantedApplication{}, fmt.Errorf("Gateway %s: %s", names[0], problem)
	}
	return found[0], nil
}

// notDemanded returns the error about a hostname for which no Gateway demands an application.
// all are the hostnames with one.
func notDemanded(gateways []AccessGateway, name string, all []string) error {
	if _, domain, ok := strings.Cut(name, "."); ok && slices.Contains(all, "*."+domain) {
		return fmt.Errorf("its application is the one of the wildcard; adopt '*.%s'", domain)
	}
	for i := range gateways {
		g := &gateways[i]
		switch {
		case !slices.ContainsFunc(g.Hostnames, func(h access.Hostname) bool { return h.Name == name }):
		case g.DemandsUnknown:
			return fmt.Errorf("the AccessPolicies for Gateway %s cannot be read, so it is not known whether it demands an application", g)
		default:
			return fmt.Errorf("Gateway %s serves the hostname, but nothing demands its protection: add an entry with policies or an AccessPolicy first", g)
		}
	}
	return errors.New(suggest.DidYouMean(
		"no Gateway demands an application with this hostname; demand the protection first", suggest.Closest(name, all)))
}

// problem returns why the controller adopts no application for the demand, or "".
func (w *WantedApplication) problem() string {
	g := w.Gateway
	switch {
	case !g.Settings.AreManaged():
		return fmt.Sprintf("spec.access.applications of GatewayClass %s is not Managed", g.Class)
	case g.State == ownership.Frozen:
		return "it is paused, or its Tunnel is Blocked, so the controller changes no application for it"
	case g.State != ownership.Accepted || !g.HasTunnel:
		return "it is not accepted or has no Tunnel, so the controller changes no application for it; see its conditions"
	case w.Invalid != nil:
		return strings.TrimSuffix(w.Invalid.Message, ".")
	case !w.Permitted:
		return fmt.Sprintf("the annotation %s of the namespace whose listener claims the hostname does not permit it", hostnames.Annotation)
	}
	for _, policy := range w.Policies {
		if _, ok := g.Settings.Catalogue[policy]; !ok {
			return fmt.Sprintf("policy %s is not in spec.access.policies of GatewayClass %s", policy, g.Class)
		}
	}
	return ""
}

// ExamineApplication returns the application that protects the demand's hostname, and
// whether the controller can adopt it. all are the account's applications.
func ExamineApplication(all []provider.Application, w WantedApplication) *Application {
	a := &Application{Gateway: w.Gateway.String(), Hostname: w.Hostname, gateway: w.Gateway.NamespacedName}
	for _, policy := range w.Policies {
		a.WantedPolicies = append(a.WantedPolicies, string(policy))
	}
	i := slices.IndexFunc(all, func(p provider.Application) bool { return slices.Contains(p.Domains, w.Hostname) })
	if i < 0 {
		a.Problem = "no application is for exactly this hostname, so there is nothing to adopt: the controller creates one, unless the application of a wider hostname covers it"
		return a
	}
	a.set(all[i], w)
	return a
}

func (a *Application) set(p provider.Application, w WantedApplication) {
	a.ID, a.Name, a.AUDTag, a.Policies, a.OtherPolicies = p.ID, p.Name, p.AUDTag, p.Policies, p.OtherPolicies
	others := slices.DeleteFunc(slices.Clone(p.Domains), func(domain string) bool { return domain == a.Hostname })
	switch {
	case len(others) > 0:
		a.Problem = fmt.Sprintf("the application also protects %s. Give these an application of their own, and remove them from this one", listNames(others))
	case p.Type != "self_hosted":
		a.Problem = fmt.Sprintf("the application has the type %s, and only self-hosted applications can be adopted", p.Type)
	}
	var wanted []provider.AccessPolicyID
	for _, policy := range w.Policies {
		wanted = append(wanted, provider.AccessPolicyID(w.Gateway.Settings.Catalogue[policy]))
	}
	a.ChangesPolicies = p.OtherPolicies > 0 || !slices.Equal(slices.Sorted(slices.Values(wanted)), slices.Sorted(slices.Values(p.Policies)))
	for _, tag := range p.Tags {
		if access.IsTag(tag) {
			a.Notes = append(a.Notes, fmt.Sprintf("The application has the tag %s of this or another installation. If another one still runs, it no longer manages the application. Remove the hostname there.", tag))
		}
	}
}

// ApplicationProblems returns the applications that cannot be adopted.
func ApplicationProblems(all []*Application) []*Application {
	return slices.DeleteFunc(slices.Clone(all), func(a *Application) bool { return a.Problem == "" })
}

// ChangingPolicies returns the applications whose adoption changes who can log in.
func ChangingPolicies(all []*Application) []*Application {
	return slices.DeleteFunc(slices.Clone(all), func(a *Application) bool { return a.Problem != "" || !a.ChangesPolicies })
}

// ApplicationNames returns the first applications' hostnames, and how many more there are.
func ApplicationNames(all []*Application) string {
	names := make([]string, len(all))
	for i, a := range all {
		names[i] = a.Hostname
	}
	return listNames(names)
}

// describePolicies describes the policies that the application has.
func (a *Application) describePolicies() string {
	var parts []string
	for _, id := range a.Policies {
		parts = append(parts, string(id))
	}
	if a.OtherPolicies > 0 {
		parts = append(parts, fmt.Sprintf("%d of its own", a.OtherPolicies))
	}
	if len(parts) == 0 {
		return none
	}
	return strings.Join(parts, ", ")
}
