package hostnames

import (
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// Annotation is a Namespace annotation. It lists the hostnames that ListenerSets and
// routes in the namespace may use.
const Annotation = "tunnelgateway.dev/hostnames"

// everything is the entry that permits every hostname.
const everything = "*"

// Permission is the set of hostnames that a namespace may use. The zero value permits
// none.
type Permission struct {
	all     bool
	entries map[string]bool
	// Invalid are the entries of the annotation that are not valid. They permit nothing.
	Invalid []string
}

// ParsePermission parses the [Annotation] value: hostnames, separated by commas and
// whitespace. The entry "*" permits every hostname. A wildcard permits itself and every
// hostname below it, and an exact hostname permits itself.
func ParsePermission(annotation string) Permission {
	p := Permission{entries: map[string]bool{}}
	for _, entry := range strings.FieldsFunc(annotation, isSeparator) {
		switch {
		case entry == everything:
			p.all = true
		case len(entry) > maxLength || !syntax.MatchString(entry) || Problem(entry) != "":
			p.Invalid = append(p.Invalid, entry)
		default:
			p.entries[entry] = true
		}
	}
	return p
}

// isSeparator reports whether the character separates entries. The chart's admission
// policy has the same list.
func isSeparator(r rune) bool { return strings.ContainsRune(", \t\n\f\r", r) }

// Permits reports whether the namespace may use the hostname, which can be a wildcard.
// The empty hostname matches every host and requires the entry "*".
func (p Permission) Permits(hostname string) bool {
	if p.all || p.entries[hostname] {
		return true
	}
	for wide := range routing.WiderHostnames(hostname) {
		if wide != "" && p.entries[wide] {
			return true
		}
	}
	return false
}
