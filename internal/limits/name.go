package limits

import (
	"strings"
	"unicode"
)

// Name names a limit: a field in spec.limits, or a fixed limit.
type Name string

// Limits on a Gateway and on its tenants.
const (
	RulesPerTunnel          Name = "rulesPerTunnel"
	RulesPerNamespace       Name = "rulesPerNamespace"
	RoutesPerHostname       Name = "routesPerHostname"
	ListenersPerNamespace   Name = "listenersPerNamespace"
	ExpressionsPerNamespace Name = "regularExpressionsPerNamespace"
	ExpressionsPerTunnel    Name = "regularExpressionsPerTunnel"
	RepeatedPerTunnel       Name = "repeatedRulesPerTunnel"
)

// Label returns the name as a metric label value, such as "rules_per_tunnel".
func (n Name) Label() string {
	var label strings.Builder
	for _, r := range string(n) {
		if unicode.IsUpper(r) {
			label.WriteByte('_')
		}
		label.WriteRune(unicode.ToLower(r))
	}
	return label.String()
}
