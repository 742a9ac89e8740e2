package controller

import (
	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// recordDNS records in the book what the decision says about the Gateway's hostnames.
func (r *run) recordDNS(o tunnel.Outcome) {
	object, set := r.tunnel.object, r.decision.Settings()
	g := r.decision.DNS(object, o)
	g.Created, g.Class = r.gateway.CreationTimestamp.Time, string(r.gateway.Spec.GatewayClassName)
	u := dnsUpdate{
		account: r.process.options.Account.ForSettings(set).Account, settings: r.dnsSettings(),
		inEffect: o.State == tunnel.OutcomeInEffect, external: set != nil && !set.RunsConnectors(),
	}
	if object != nil {
		u.account, g.Connected = object.Spec.AccountID, object.Status.Connectors.Ready > 0
		if isManagedElsewhere(object, r.process.options.Tunnel) || object.Status.Deleting || r.departure != tunnel.Undecided {
			g.State = ownership.Frozen // another process or another Gateway owns the tunnel, or it is about to be deleted
		}
	}
	u.gateway = g
	r.process.dns.update(u)
}

// isManagedElsewhere reports whether another process manages the Tunnel: the Tunnel was
// created in another cluster, or a newer version of the controller serves it.
func isManagedElsewhere(t *v1alpha1.Tunnel, o tunnel.Options) bool {
	return t.Spec.ClusterUID != o.ClusterUID || t.Spec.ControllerName != o.ControllerName || tunnel.IsNewer(t)
}

// recordDeparture records in the book what becomes of the records of a Gateway that is
// gone. While that is not decided, nothing changes for them.
func (r *run) recordDeparture() {
	object := r.tunnel.object
	if object == nil {
		return // the Tunnel was deleted; the next reconcile forgets the Gateway
	}
	name := r.key.NamespacedName
	g := dns.Gateway{NamespacedName: name, Tunnel: provider.TunnelID(object.Status.TunnelID), State: ownership.Departed}
	switch r.departure {
	case tunnel.Undecided:
		r.process.dns.suspend(name, g.Tunnel, object.Spec.AccountID)
		return
	case tunnel.ReleasesRecords:
		g.State = ownership.Retiring
	case tunnel.KeepsTunnel, tunnel.ReleasesApplications:
	}
	r.process.dns.update(dnsUpdate{gateway: g, account: object.Spec.AccountID, inEffect: true})
}

// dnsFacts returns what the zones' records mean for the Tunnel.
func (r *run) dnsFacts(object *v1alpha1.Tunnel) tunnel.DNS {
	if isManagedElsewhere(object, r.process.options.Tunnel) {
		return tunnel.DNS{Status: object.Status.DNS} // this process writes nothing
	}
	facts := tunnel.DNS{Status: r.dnsStatus(object)}
	// A Gateway that exists with another identity keeps its records for its next tunnel.
	if r.decision == nil && object.Status.TunnelID != "" {
		facts.Unreleased, facts.BlockedUntil = r.process.dns.unreleased(r.key.NamespacedName, object.Spec.AccountID)
	}
	return facts
}

// dnsStatus returns what the Tunnel's status reports. The numbers remain while a zone has
// not been read.
func (r *run) dnsStatus(object *v1alpha1.Tunnel) *v1alpha1.TunnelDNSStatus {
	status := v1alpha1.TunnelDNSStatus{Adoptions: r.process.dns.adoptionResults(object, r.process.clock.now())}
	if r.dnsSettings().ReadsZones() {
		findings, known := r.process.dns.findings(r.key.NamespacedName)
		status.Hostnames = countVerdicts(findings)
		if !known && object.Status.DNS != nil {
			status.Hostnames = object.Status.DNS.Hostnames
		}
	}
	if len(status.Adoptions) == 0 && len(status.Hostnames) == 0 {
		return nil
	}
	return &status
}

// dnsSettings returns the DNS settings of the Gateway's class; the zero value without a
// decision, and if the settings of the class are not valid.
func (r *run) dnsSettings() settings.DNS {
	if r.decision == nil {
		return settings.DNS{}
	}
	return r.decision.Plane(r.tunnel.object).Result.DNS
}

func countVerdicts(findings dns.Findings) map[string]int32 {
	if len(findings) == 0 {
		return nil
	}
	counts := map[string]int32{}
	for _, f := range findings {
		counts[string(f.Verdict)]++
	}
	return counts
}

// dnsEvidence returns what the statuses report about the Gateway's hostnames in DNS. If
// the settings of its class are not valid, the conditions remain.
func (r *run) dnsEvidence() *gateway.DNS {
	switch set := r.dnsSettings(); {
	case set.Mode == v1alpha1.DNSOff:
		return nil
	case set.ReadsZones():
		findings, known := r.process.dns.findings(r.key.NamespacedName)
		return &gateway.DNS{Known: known, Findings: findings}
	default:
		return &gateway.DNS{}
	}
}
