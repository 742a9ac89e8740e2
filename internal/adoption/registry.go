package adoption

import (
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// isRegistry reports whether external-dns's registry contains the record.
func isRegistry(r provider.Record) bool {
	return r.Type == "TXT" && strings.Contains(r.Content, "heritage=external-dns")
}

// registry returns the name of the TXT record by which external-dns claims the name, or "".
func (z *Zone) registry(name string) string {
	i := slices.IndexFunc(z.registries, func(registry string) bool { return claims(registry, name) })
	if i < 0 {
		return ""
	}
	return z.registries[i]
}

// recordTypes are the types in the names of external-dns's TXT records.
var recordTypes = []string{"cname", "a", "aaaa"}

// claims reports whether the TXT record of external-dns with the name registry claims the
// name. It knows external-dns's default format, and prefixes that are a label that ends with
// the type, as docs/guides/external-dns.md recommends.
func claims(registry, name string) bool {
	if domain, ok := strings.CutPrefix(name, "*."); ok && claims(registry, "wildcard."+domain) { // the guide's --txt-wildcard-replacement
		return true
	}
	if registry == name || slices.ContainsFunc(recordTypes, func(t string) bool { return registry == t+"-"+name }) {
		return true
	}
	label, ok := strings.CutSuffix(registry, "."+name)
	return ok && slices.ContainsFunc(recordTypes, func(t string) bool {
		return label == t || strings.HasSuffix(label, "-"+t) && !strings.Contains(label, ".")
	})
}
