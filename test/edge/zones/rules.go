package zones

import (
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"
)

// types are the types that the API accepts.
var types = strings.Fields(
	"A AAAA CAA CERT CNAME DNSKEY DS HTTPS LOC MX NAPTR NS OPENPGPKEY PTR SMIMEA SRV SSHFP SVCB TLSA TXT URI")

// complete returns the record as the API stores it, or why no zone with
// these settings can contain it. The order of the checks is uncertain.
func (z Zone) complete(r Record) (Record, error) {
	var err error
	if r.Name, err = z.qualify(r.Name); err != nil {
		return Record{}, err
	}
	if !slices.Contains(types, r.Type) {
		return Record{}, invalid(CodeInvalidRecord, "DNS Validation Error: the type %q is invalid.", r.Type)
	}
	if r.Content, err = completeContent(r); err != nil {
		return Record{}, err
	}
	r.Proxiable = r.IsAddress()
	if r.Type != "MX" && r.Type != "URI" {
		r.Priority = nil // "ignored for other record types"
	}
	if r.TTL == 0 || r.Proxied {
		r.TTL = automatic
	}
	if r.Tags == nil {
		r.Tags = []string{}
	}
	return r, z.checkAttributes(r)
}

// checkAttributes checks everything but the name, the type and the content.
func (z Zone) checkAttributes(r Record) error {
	switch {
	case r.Proxied && !r.Proxiable:
		return invalid(CodeNotProxiable, "This record type cannot be proxied.")
	case r.TTL != automatic && (r.TTL < 60 || r.TTL > 86400):
		return invalid(CodeInvalidTTL, "Invalid TTL. Must be between 60 and 86400 seconds, or 1 for Automatic.")
	case utf8.RuneCountInString(r.Comment) > z.commentLimit():
		return invalid(CodeComment, "DNS record comment exceeds the maximum length of %d characters.", z.commentLimit())
	case strings.ContainsAny(r.Comment, "\r\n"):
		// The documentation states the rule, but not the code.
		return invalid(CodeInvalidRecord, "DNS Validation Error: a comment cannot contain line breaks.")
	case len(r.Tags) > z.tagLimit():
		return invalid(CodeTags, "DNS record has %d tags, exceeding the quota of %d.", len(r.Tags), z.tagLimit())
	}
	return nil
}

// completeContent returns the content as the API stores it. For types that the API describes
// with data, such as SRV, the content is stored unchanged, although Cloudflare composes it.
func completeContent(r Record) (string, error) {
	switch r.Type {
	case "A", "AAAA":
		return completeAddress(r)
	case "CNAME":
		target := normalize(r.Content)
		if !isName(target) || !strings.Contains(target, ".") {
			return "", invalid(CodeInvalidCNAME, "Content for CNAME record is invalid.")
		}
		if target == r.Name {
			return "", invalid(CodeSelfReference, "CNAME content cannot reference itself.")
		}
		return target, nil
	case "TXT":
		// "If you save your TXT content without any quotes, Cloudflare will automatically
		// add double quotes."
		if !strings.Contains(r.Content, `"`) {
			return `"` + r.Content + `"`, nil
		}
	}
	if r.Content == "" && r.Data == nil {
		return "", invalid(CodeInvalidRecord, "DNS Validation Error: the content is empty.")
	}
	return r.Content, nil
}

// completeAddress returns an IP address in canonical notation.
func completeAddress(r Record) (string, error) {
	address, err := netip.ParseAddr(r.Content)
	switch {
	case r.Type == "A" && (err != nil || !address.Is4()):
		return "", invalid(CodeInvalidA, "Content for A record must be a valid IPv4 address.")
	case r.Type == "AAAA" && (err != nil || !address.Is6() || address.Zone() != ""):
		return "", invalid(CodeInvalidAAAA, "Content for AAAA record must be a valid IPv6 address.")
	}
	return address.String(), nil
}

// checkBeside checks a record against the other records in its zone.
func (z Zone) checkBeside(r Record, others []Record) error {
	for _, other := range others {
		if other.ID == r.ID || other.Name != r.Name {
			continue
		}
		if err := z.checkPair(r, other); err != nil {
			return err
		}
	}
	return nil
}

// checkPair checks a record against one with the same name. Two identical CNAME records
// give the error about the host, not about identical records
// (kubernetes-sigs/external-dns#3621). A TXT record can share its name with a CNAME
// (kubernetes-sigs/external-dns#2410) and with NS records (an example in the setup of
// advanced nameservers). The same holds for other types without an address, such as MX.
func (z Zone) checkPair(r, other Record) error {
	switch {
	case r.Type == "CNAME" && other.IsAddress():
		return invalid(CodeHostExists, "An A, AAAA, or CNAME record with that host already exists.%s", sameName)
	case r.IsAddress() && other.Type == "CNAME":
		return invalid(CodeCNAMEExists, "A CNAME record with that host already exists.%s", sameName)
	case r.Type == other.Type && r.Content == other.Content:
		return invalid(CodeIdentical, "An identical record already exists.")
	case r.Name == z.Name:
		return nil // the apex always has NS records
	case r.IsAddress() && other.Type == "NS":
		return invalid(CodeNSExists, "NS records with that host already exist.")
	case r.Type == "NS" && other.IsAddress():
		// "NS records cannot exist on the same name as any other record type." The error's
		// code is uncertain, and the example mentioned above has an A record beside NS.
		return invalid(CodeHostExists, "An A, AAAA, or CNAME record with that host already exists.%s", sameName)
	}
	return nil
}
