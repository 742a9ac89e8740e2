package fake

import (
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// The methods of [provider.DNS].
const (
	OpZones            Op = "Zones"
	OpRecords          Op = "Records"
	OpApply            Op = "Apply"
	OpUsage            Op = "Usage"
	OpCertificateHosts Op = "CertificateHosts"
	OpSettings         Op = "Settings"
)

// permissions are those of which an API token needs one for a method, with the names in
// Cloudflare's dashboard.
var permissions = map[Op][]string{
	OpZones:            {"Zone Read"},
	OpRecords:          {"DNS Read", "DNS Edit"},
	OpApply:            {"DNS Edit"},
	OpUsage:            {"DNS Read", "DNS Edit"},
	OpCertificateHosts: {"SSL and Certificates Read"},
	OpSettings:         {"Zone Settings Read"},
}

// DNSCall is one call to a [DNS] and its outcome. Calls that send no request, because
// they have no or too many changes or names, are not recorded.
type DNSCall struct {
	Op   Op
	Zone provider.ZoneID
	// Names are the names of the records or the settings that are read, or the zone's name
	// that Zones returns.
	Names []string
	// Batch is the argument to Apply.
	Batch provider.Batch
	// Err is the call's error, without the wrapping operation.
	Err error
}

// Restrict limits the API token to the permissions, which have the names in Cloudflare's
// dashboard.
func (d *DNS) Restrict(permissions ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.permissions = append([]string{}, permissions...)
}

// Fail makes the next calls to op return errs, one error per call, without any other
// effect. A nil error lets the call succeed.
func (d *DNS) Fail(op Op, errs ...error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.scripted.add(op, false, errs)
}

// FailAfter is like [DNS.Fail], but the calls take effect before they return their error,
// as if the response was lost.
func (d *DNS) FailAfter(op Op, errs ...error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.scripted.add(op, true, errs)
}

// Calls returns the recorded calls in order. If ops are given, it returns only calls to
// these methods.
func (d *DNS) Calls(ops ...Op) []DNSCall {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(d.calls), func(c DNSCall) bool {
		return len(ops) > 0 && !slices.Contains(ops, c.Op)
	})
}
