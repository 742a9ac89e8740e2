package access

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// maxTags is how many tags an application can have. (Source: the documentation's account
// limits.)
const maxTags = 25

// types are the types that the API accepts.
var types = []string{
	"self_hosted", "saas", "ssh", "vnc", "app_launcher", "warp", "biso", "bookmark", "dash_sso",
	"infrastructure", "rdp", "mcp", "mcp_portal", "proxy_endpoint",
}

// check returns an error if the fields are invalid for the application. The order of the
// checks is uncertain.
func (d *Database) check(a *account, target *application, p parsed) error {
	switch {
	case !slices.Contains(types, p.Type):
		return invalid("app type is missing or invalid")
	case slices.Contains(protecting, p.Type) && p.Name == "":
		return invalid("name is required")
	case slices.Contains(protecting, p.Type) && len(p.domains()) == 0:
		return invalid("domain is required")
	case p.CORS != nil && p.PreflightBypass:
		return invalid("options_preflight_bypass cannot be on if cors_headers is set") // the text is uncertain
	}
	if err := a.checkTags(p.Tags); err != nil {
		return err
	}
	if _, err := time.ParseDuration(p.SessionDuration); p.SessionDuration != "" && err != nil {
		return invalid("session_duration is invalid")
	}
	if !slices.Contains(protecting, p.Type) {
		return nil
	}
	return d.checkDomains(a, target, p.domains())
}

// checkTags checks the tags of an application against those of the account.
func (a *account) checkTags(tags []string) error {
	if len(tags) > maxTags {
		return invalid("at most %d tags are allowed", maxTags)
	}
	if slices.ContainsFunc(tags, func(tag string) bool { return !slices.Contains(a.tags, tag) }) {
		return invalid("tags contain a tag that does not exist")
	}
	return nil
}

// checkDomains checks the domains against the zones and the other applications.
func (d *Database) checkDomains(a *account, target *application, domains []string) error {
	for _, domain := range domains {
		host, _, _ := strings.Cut(domain, "/")
		if !isHostPattern(host) {
			return invalid("domain %q is invalid", domain)
		}
		if !d.options.HasZone(target.account, host) {
			return invalid("domain does not belong to zone")
		}
		for _, other := range a.applications {
			if other != target && slices.Contains(protecting, other.parsed.Type) && slices.Contains(other.parsed.domains(), domain) {
				return applicationExists()
			}
		}
	}
	return nil
}

var label = regexp.MustCompile(`^[0-9a-z_*-]+$`)

// isHostPattern reports whether an application can have the hostname: "at most one wildcard
// in between each dot".
func isHostPattern(host string) bool {
	labels := strings.Split(host, ".")
	return len(labels) > 1 && !slices.ContainsFunc(labels, func(l string) bool {
		return !label.MatchString(l) || strings.Count(l, "*") > 1
	})
}

// tagName is what the API accepts as the name of a tag.
var tagName = regexp.MustCompile(`^[0-9A-Za-z]{1,35}$`)
