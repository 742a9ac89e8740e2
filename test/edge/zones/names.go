package zones

import (
	"strings"

	"golang.org/x/net/idna"
)

// normalize returns a name as the API stores it: in lower case, in Punycode and without a
// dot at its end.
func normalize(name string) string {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if ascii, err := idna.Punycode.ToASCII(name); err == nil {
		return ascii
	}
	return name
}

// qualify returns a record's full name. "@" is the apex. To every other name that is not in
// the zone, Cloudflare appends the zone's name, even if the name is in another zone
// (NewFuture/DDNS#21).
func (z Zone) qualify(name string) (string, error) {
	name = normalize(name)
	switch {
	case name == "@":
		name = z.Name
	case !z.contains(name):
		name += "." + z.Name
	}
	if !isName(name) {
		return "", invalid(CodeInvalidName, "DNS name is invalid.")
	}
	return name, nil
}

// contains reports whether the zone's name is the name or one of its ancestors.
func (z Zone) contains(name string) bool {
	return name == z.Name || strings.HasSuffix(name, "."+z.Name)
}

// isName reports whether the labels have a valid length and no spaces. DNS labels can
// otherwise contain any character: an asterisk that is not the first label is a literal
// asterisk.
func isName(name string) bool {
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || strings.ContainsAny(label, " \t\r\n") {
			return false
		}
	}
	return len(name) <= 253
}

// parent returns the name without its first label.
func parent(name string) string {
	_, rest, _ := strings.Cut(name, ".")
	return rest
}
