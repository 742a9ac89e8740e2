package access

import (
	"encoding/hex"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
)

const (
	// tagPrefix begins the tag of every application that a controller manages. The
	// hexadecimal digits of three authentication codes follow: those of the installation,
	// of the Gateway, and of the level and the owner that decide. Cloudflare accepts 35
	// letters and digits.
	tagPrefix          = "tg"
	installationDigits = 12
	gatewayDigits      = 12
	deciderDigits      = 8
	// revokeTag marks an application whose tokens are still to be revoked.
	revokeTag = "tgrevoke"
	// contestedTag marks an application that was repaired three times within an hour.
	contestedTag = "tgcontested"
)

// digits returns the first hexadecimal digits of the authentication code over the parts.
func digits(i ownership.Identity, number int, parts ...string) string {
	return hex.EncodeToString(i.MAC(parts...))[:number]
}

func installationOf(i ownership.Identity) string {
	return digits(i, installationDigits, "access", "installation")
}

func gatewayOf(i ownership.Identity, namespace, name string) string {
	return digits(i, gatewayDigits, "access", "gateway", namespace, name)
}

func deciderOf(i ownership.Identity, key string) string {
	return digits(i, deciderDigits, "access", "decider", key)
}

// IsTag reports whether the tag has the form of the tag of an installation, of this one or of
// another one.
func IsTag(tag string) bool { return isOwnershipTag(tag) }

// isOwnershipTag reports whether the tag has the form of the tag of an installation, of this
// one or of another one.
func isOwnershipTag(tag string) bool {
	code, ok := strings.CutPrefix(tag, tagPrefix)
	return ok && len(code) == installationDigits+gatewayDigits+deciderDigits && strings.Trim(code, "0123456789abcdef") == ""
}

// withTags returns the tags of an application after a change: the tag of its owner, the
// given marks, and the tags that no controller has written.
func withTags(before []string, owner string, marks ...string) []string {
	tags := append([]string{owner}, marks...)
	for _, tag := range before {
		if !isOwnershipTag(tag) && tag != revokeTag && tag != contestedTag && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	return tags
}
