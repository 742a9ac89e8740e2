package settings

import (
	"time"

	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// The defaults in spec.access, and of a session.
const (
	defaultMaxApplications = 400
	defaultOpeningDelay    = 30 * time.Second
	// DefaultSessionDuration is how long a session lasts unless a demand says otherwise. It
	// is Cloudflare's default.
	DefaultSessionDuration = 24 * time.Hour
)

// Applications are the settings of a GatewayClass for applications of Cloudflare Access,
// with defaults.
type Applications struct {
	Mode v1alpha1.ApplicationsMode
	// TeamName is the name of the Zero Trust organization.
	TeamName string
	// Catalogue has the IDs of the reusable policies, by name.
	Catalogue map[v1alpha1.PolicyName]string
	// MaxApplications limits the applications of the installation in the account.
	MaxApplications int
	// OpeningDelay is how long a hostname remains protected after the last demand.
	OpeningDelay time.Duration
	// APIToken refers to the Secret with the API token for Access in the controller's
	// namespace. Nil means the account's API token.
	APIToken *v1alpha1.SecretKeyReference
	// RequiresPermission reports whether spec.hostnames.from is NamespaceAnnotation. If
	// not, only the GatewayClass can demand protection.
	RequiresPermission bool
}

// AreManaged reports whether the controller manages applications. The zero value, which
// stands for settings that are not valid, manages none.
func (a Applications) AreManaged() bool { return a.Mode == v1alpha1.ApplicationsManaged }

// Warning returns whose demands the settings close, or "".
func (a Applications) Warning() string {
	if !a.AreManaged() || a.RequiresPermission {
		return ""
	}
	return "With access.applications Managed and hostnames.from All, only entries of the GatewayClass can protect a hostname. " +
		"AccessPolicies and entries of Gateways close theirs. To permit them, set hostnames.from to NamespaceAnnotation."
}

// Applications returns the settings for applications. It accepts nil settings, for which
// the mode is Disabled.
func (s *Settings) Applications() Applications {
	if s == nil {
		return newApplications(&v1alpha1.TunnelConfigurationSpec{})
	}
	return newApplications(&s.Spec)
}

// ClassApplications returns the settings of the GatewayClass for applications, even when
// the settings of the Gateway are not valid. It returns false when those of the
// GatewayClass are not valid.
func ClassApplications(in Input) (Applications, bool) {
	c, problem := in.class()
	if problem != nil {
		return Applications{}, false
	}
	return newApplications(&c.spec), true
}

func newApplications(spec *v1alpha1.TunnelConfigurationSpec) Applications {
	set := ptr.Deref(spec.Access, v1alpha1.AccessApplications{})
	hostnames := ptr.Deref(spec.Hostnames, v1alpha1.Hostnames{})
	a := Applications{
		Mode:               ptr.Deref(set.Applications, v1alpha1.ApplicationsDisabled),
		TeamName:           ptr.Deref(set.TeamName, ""),
		Catalogue:          make(map[v1alpha1.PolicyName]string, len(set.Policies)),
		MaxApplications:    int(ptr.Deref(set.MaxApplications, defaultMaxApplications)),
		OpeningDelay:       secondsOr(set.OpeningDelay, defaultOpeningDelay),
		APIToken:           set.APIToken,
		RequiresPermission: ptr.Deref(hostnames.From, v1alpha1.HostnamesFromAll) == v1alpha1.HostnamesFromNamespaceAnnotation,
	}
	for _, policy := range set.Policies {
		a.Catalogue[policy.Name] = policy.ID
	}
	return a
}

// SessionDuration returns the duration of a session, or the default for none and for an
// invalid one, which the CustomResourceDefinition prevents.
func SessionDuration(d *v1alpha1.SessionDuration) time.Duration {
	if d == nil {
		return DefaultSessionDuration
	}
	duration, err := time.ParseDuration(string(*d))
	if err != nil || duration <= 0 {
		return DefaultSessionDuration
	}
	return duration
}

// checkApplications rejects managed applications without a team, and an invalid duration,
// which the CustomResourceDefinition prevents.
func checkApplications(spec *v1alpha1.TunnelConfigurationSpec) string {
	if spec.Access == nil {
		return ""
	}
	if newApplications(spec).AreManaged() && ptr.Deref(spec.Access.TeamName, "") == "" {
		return "spec.access.teamName is not set, but spec.access.applications is Managed. Set the name of the Zero Trust organization, or set applications to Disabled."
	}
	if delay := spec.Access.OpeningDelay; delay != nil {
		if _, err := delay.Seconds(); err != nil {
			return "spec.access.openingDelay must be a positive duration in whole seconds."
		}
	}
	return ""
}
