package settings

import (
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// The defaults in spec.dns.
const (
	defaultDeletionDelay          = 10 * time.Minute
	defaultMaxRecordsPerNamespace = 100
)

// DNS are the DNS settings of a GatewayClass, with defaults.
type DNS struct {
	Mode v1alpha1.DNSMode
	// Zones are the zones in which hostnames are published.
	Zones []v1alpha1.DNSZone
	// Exclude are the hostnames, and wildcards that include the hostnames below them,
	// that the controller does not manage.
	Exclude []string
	// DeletionDelay is how long a record remains after its hostname is no longer used.
	DeletionDelay time.Duration
	// MaxRecordsPerNamespace limits one namespace's records in a zone.
	MaxRecordsPerNamespace int
	// APIToken refers to the Secret with the API token for DNS in the controller's
	// namespace. Nil means the account's API token.
	APIToken *v1alpha1.SecretKeyReference
	// RequiresPermission reports whether a hostname is published only if the annotation
	// of the listener's namespace permits it: spec.hostnames.from is NamespaceAnnotation.
	RequiresPermission bool
}

// ReadsZones reports whether the controller reads zones: the mode is Observe or Manage. The
// zero value, which stands for settings that are not valid, reads none.
func (d DNS) ReadsZones() bool { return d.Mode == v1alpha1.DNSObserve || d.Mode == v1alpha1.DNSManage }

// DNS returns the DNS settings. It accepts nil settings, for which the mode is Off.
func (s *Settings) DNS() DNS {
	if s == nil {
		return newDNS(&v1alpha1.TunnelConfigurationSpec{})
	}
	return newDNS(&s.Spec)
}

// ClassDNS returns the DNS settings of the GatewayClass, even when the settings of the
// Gateway are not valid. It returns false when those of the GatewayClass are not valid.
func ClassDNS(in Input) (DNS, bool) {
	c, problem := in.class()
	if problem != nil {
		return DNS{}, false
	}
	return newDNS(&c.spec), true
}

// Warning returns what the settings permit every namespace to do, or "".
func (d DNS) Warning() string {
	if d.Mode != v1alpha1.DNSManage || d.RequiresPermission {
		return ""
	}
	return "With dns.mode Manage and hostnames.from All, every namespace whose routes a listener admits can publish any free name in the zones. " +
		"Set hostnames.from to NamespaceAnnotation, unless you trust all of these namespaces."
}

func newDNS(spec *v1alpha1.TunnelConfigurationSpec) DNS {
	set := ptr.Deref(spec.DNS, v1alpha1.DNS{})
	hostnames := ptr.Deref(spec.Hostnames, v1alpha1.Hostnames{})
	return DNS{
		Mode:  ptr.Deref(set.Mode, v1alpha1.DNSOff),
		Zones: set.Zones, Exclude: set.Exclude,
		DeletionDelay:          secondsOr(set.DeletionDelay, defaultDeletionDelay),
		MaxRecordsPerNamespace: int(ptr.Deref(set.MaxRecordsPerNamespace, defaultMaxRecordsPerNamespace)),
		APIToken:               set.APIToken,
		RequiresPermission:     ptr.Deref(hostnames.From, v1alpha1.HostnamesFromAll) == v1alpha1.HostnamesFromNamespaceAnnotation,
	}
}

// checkDNS rejects a DNS mode without zones, names that no hostname can have, and invalid
// durations, which the CustomResourceDefinition prevents.
func checkDNS(spec *v1alpha1.TunnelConfigurationSpec) string {
	if spec.DNS == nil {
		return ""
	}
	if mode := ptr.Deref(spec.DNS.Mode, v1alpha1.DNSOff); mode != v1alpha1.DNSOff && len(spec.DNS.Zones) == 0 {
		return fmt.Sprintf("spec.dns.zones is empty, but spec.dns.mode is %s. List the zones, or set mode to Off.", mode)
	}
	for i, zone := range spec.DNS.Zones {
		if violation := checkHostname(fmt.Sprintf("spec.dns.zones[%d].name", i), zone.Name); violation != "" {
			return violation
		}
	}
	for i, hostname := range spec.DNS.Exclude {
		if violation := checkHostname(fmt.Sprintf("spec.dns.exclude[%d]", i), hostname); violation != "" {
			return violation
		}
	}
	if delay := spec.DNS.DeletionDelay; delay != nil {
		if _, err := delay.Seconds(); err != nil {
			return "spec.dns.deletionDelay must be a positive duration in whole seconds."
		}
	}
	return ""
}

// secondsOr returns the duration, or the default for none and for an invalid one, which the
// CustomResourceDefinition prevents.
func secondsOr(d *v1alpha1.Duration, otherwise time.Duration) time.Duration {
	if d == nil {
		return otherwise
	}
	seconds, err := d.Seconds()
	if err != nil {
		return otherwise
	}
	return time.Duration(seconds) * time.Second
}
