package limits

import (
	"strings"
	"unicode"
)

// Name is the name of a limit: that of a field of spec.limits, or of a fixed limit.
type Name string

// The limits of a Gateway.
const (
	RulesPerTunnel          Name = "rulesPerTunnel"
	RulesPerNamespace       Name = "rulesPerNamespace"
	RoutesPerHostname       Name = "routesPerHostname"
	ListenersPerNamespace   Name = "listenersPerNamespace"
	ExpressionsPerNamespace Name = "regularExpressionsPerNamespace"
	ExpressionsPerTunnel    Name = "regularExpressionsPerTunnel"
	RepeatedPerTunnel       Name = "repeatedRulesPerTunnel"
)

// Label returns the name as a value of a label of metrics, such as "rules_per_tunnel".
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
