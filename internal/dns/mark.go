package dns

import (
	"crypto/hmac"
	"encoding/base32"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const (
	// markPrefix begins the comment of every record that a controller manages.
	markPrefix = "tgw "
	// macLength is the length of a mark's authentication code in bytes: 120 bits, which
	// base32 encodes without padding. A comment has at most 92 characters with it, and
	// Free zones accept 100.
	macLength = 15
)

var macEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// mark returns the comment that makes a record this installation's: "tgw <cluster ID>
// <mac>". It is valid only for the zone, the name and the target, so that a copied comment
// and an edited target are detected.
func (o Options) mark(zone provider.ZoneID, name, target string) string {
	return markPrefix + o.ClusterID + " " + o.mac(zone, name, target)
}

// hasMark reports whether the record is this installation's. It compares in constant time.
func (o Options) hasMark(zone provider.ZoneID, r provider.Record) bool {
	if r.Type != typeCNAME || len(o.Key) == 0 || !strings.HasPrefix(r.Comment, markPrefix+o.ClusterID+" ") {
		return false
	}
	return hmac.Equal([]byte(r.Comment), []byte(o.mark(zone, r.Name, target(r))))
}

// mac returns the authentication code.
func (o Options) mac(zone provider.ZoneID, name, target string) string {
	code := ownership.Identity(o).MAC(string(zone), name, target)
	return macEncoding.EncodeToString(code[:macLength])
}

// Installation returns the cluster ID in a comment that has the form of a mark, or "". It
// does not prove that the installation wrote the comment.
func Installation(comment string) string {
	rest, ok := strings.CutPrefix(comment, markPrefix)
	if !ok {
		return ""
	}
	id, mac, ok := strings.Cut(rest, " ")
	if decoded, err := macEncoding.DecodeString(mac); !ok || err != nil || len(decoded) != macLength || strings.Trim(id, idCharacters) != "" {
		return ""
	}
	return id
}

// idCharacters are the characters of cluster IDs. The configuration accepts no others.
const idCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-"

// fingerprint identifies the options without containing the key.
func (o Options) fingerprint() string { return o.mac("", "fingerprint", "") }
