package check

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/probe"
)

// expiryWarning is how long before a certificate's expiry a warning begins. Cloudflare renews
// its certificates 30 days before.
const expiryWarning = 7 * 24 * time.Hour

// certificateStep checks the certificate that the edge presents for the host, and the settings
// of its zone that affect requests.
func certificateStep(ctx context.Context, n probe.Network, z zoneView, r Request, e Expectation) Step {
	var f findings
	host := r.URL.Hostname()
	if r.URL.Scheme == "http" {
		f.add(OK, "The request uses http, without a certificate.")
	} else {
		f.certificate(host, z, probe.Certificate(ctx, n, host, cmp.Or(r.URL.Port(), "443")), time.Now())
	}
	f.settings(ctx, z, r)
	if r.NoRequest && e.usesGRPC() {
		f.add(Unknown, "gRPC requires the zone's gRPC setting, which only a request can test.")
		f.advise("Omit --no-request.")
	}
	return newStep(StepCertificate, f)
}

// certificate reports the certificate that was presented.
func (f *findings) certificate(host string, z zoneView, p probe.Presented, now time.Time) {
	switch p.Failure {
	case probe.NoFailure:
		f.add(OK, "The certificate for %s was issued by %s and expires on %s.", abbreviate(p.Names), cmp.Or(p.Issuer, "an unknown authority"), p.NotAfter.UTC().Format(time.DateOnly))
		if p.NotAfter.Sub(now) < expiryWarning {
			f.add(Warning, "The certificate expires in %s, and Cloudflare should have renewed it.", p.NotAfter.Sub(now).Round(time.Hour))
			f.advise("Check the certificate's status in the Cloudflare dashboard, under SSL/TLS > Edge Certificates.")
		}
	case probe.Untrusted:
		f.untrusted(host, z, p)
	case probe.Handshake:
		f.add(Failed, "The server ends the TLS handshake for %s: it has no certificate for the name. (%s)", host, p.Err)
		f.advise("%s", orderCertificate(host, z))
	case probe.NoSuchHost:
		f.add(Unknown, "The certificate is not checked, because %s does not resolve.", host)
	case probe.Refused:
		f.add(Failed, "The address of %s refuses connections: %s.", host, p.Err)
		f.advise("Cloudflare's edge never refuses connections. See the step dns.")
	case probe.Timeout, probe.Other:
		f.add(Failed, "No connection to %s: %s.", host, p.Err)
		f.advise("Check the network of this machine. The command connects directly: HTTPS_PROXY has no effect.")
	}
}

// untrusted reports a certificate that is not valid.
func (f *findings) untrusted(host string, z zoneView, p probe.Presented) {
	switch p.Problem {
	case probe.WrongName:
		f.add(Failed, "The certificate is for %s, not for %s.", cmp.Or(abbreviate(p.Names), "no name"), host)
		f.advise("%s", orderCertificate(host, z))
	case probe.Expired:
		f.add(Failed, "The certificate has expired or is not valid yet: it is valid until %s.", p.NotAfter.UTC().Format(time.DateOnly))
		f.advise("Check the clock of this machine, and the certificate in the Cloudflare dashboard, under SSL/TLS > Edge Certificates.")
	case probe.UnknownAuthority:
		f.add(Failed, "No authority that this machine trusts has signed the certificate; its issuer is %s.", cmp.Or(p.Issuer, "unknown"))
		f.advise("A proxy in your network may replace certificates, or the hostname does not lead to Cloudflare.")
	case probe.Invalid:
		f.add(Failed, "The certificate is not valid: %s.", p.Err)
	}
}

// orderCertificate says which certificate the host needs. Universal SSL covers a zone's name
// and one level below it. (Source: Cloudflare's documentation of Universal SSL.)
func orderCertificate(host string, z zoneView) string {
	_, parent, _ := strings.Cut(host, ".")
	deep := strings.Count(host, ".") > 2
	if z.zone.Name != "" {
		deep = host != z.zone.Name && parent != z.zone.Name
	}
	if deep {
		return "Universal SSL covers a zone's name and one level below it. Order an advanced certificate for *." + parent + ", or use a hostname with one level fewer."
	}
	return "Universal SSL covers the name: check in the Cloudflare dashboard, under SSL/TLS > Edge Certificates, that it is on and that the certificate is active. A new zone can take a day."
}

// Settings of a zone that affect requests to a tunnel.
const (
	settingSSL   = "ssl"
	settingHTTPS = "always_use_https"
)

// settings reports the settings of the zone. Without a token of the caller, the step dns says
// so.
func (f *findings) settings(ctx context.Context, z zoneView, r Request) {
	if z.api == nil || z.err != nil {
		return
	}
	values, err := z.api.Settings(ctx, z.zone.ID, settingSSL, settingHTTPS)
	if err != nil {
		message, advice := unread(err, "Zone Settings: Read")
		f.add(Unknown, "The settings of zone %s are not checked: %s", z.zone.Name, message)
		f.adviseIf(advice)
		return
	}
	f.ssl(z, values[settingSSL], r.URL.Scheme)
	f.alwaysHTTPS(z, values[settingHTTPS], r.URL.Scheme)
}

func (f *findings) ssl(z zoneView, mode, scheme string) {
	switch {
	case mode != "off":
		f.add(OK, "Zone %s: SSL/TLS mode %s. It does not affect a tunnel, whose connections are always encrypted.", z.zone.Name, mode)
	case scheme == "http":
		f.add(OK, "Zone %s: SSL/TLS mode off. Visitors cannot use https.", z.zone.Name)
	default:
		f.add(Failed, "Zone %s: SSL/TLS mode off. Cloudflare redirects https to http.", z.zone.Name)
		f.advise("Set the mode to Full or Full (strict) in the zone's SSL/TLS settings.")
	}
}

func (f *findings) alwaysHTTPS(z zoneView, value, scheme string) {
	switch {
	case value != "on":
		f.add(OK, "Zone %s: always_use_https is %s. HTTP requests also reach the Gateway's listeners.", z.zone.Name, value)
	case scheme == "http":
		f.add(Warning, "Zone %s: always_use_https is on. Cloudflare redirects the request to https before it reaches the Gateway.", z.zone.Name)
		f.advise("Use the https URL.")
	default:
		f.add(OK, "Zone %s: always_use_https is on.", z.zone.Name)
	}
}

func (e Expectation) usesGRPC() bool {
	return slices.ContainsFunc(e.Gateways, func(g ServingGateway) bool { return g.GRPC })
}
