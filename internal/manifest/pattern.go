package manifest

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// requirements describe the patterns in the supported kinds' definitions, because an
// example is easier to understand than a regular expression.
var requirements = map[string]string{
	`^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`:                 "must be a hostname in lower case without a port, such as shop.example.com or *.example.com",
	`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`:                        "must be a DNS name in lower case, such as web or shop.example.com",
	`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`:                                                          "must be a name in lower case without dots, such as team-a",
	`^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`:                     "must be an API group without a version, such as gateway.networking.k8s.io, or empty for the core API",
	`^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$`:                                                    "must be an object kind, such as Service",
	`^([0-9]{1,5}(h|m|s|ms)){1,4}$`:                                                            "must be a duration, such as 10s or 1m30s",
	"^[A-Za-z0-9!#$%&'*+\\-.^_\\x60|~]+$":                                                      "must be a header or query parameter name, such as X-Version",
	`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`:                                            "must be a label value, such as team-a",
	`^(([^:/?#]+):)(//([^/?#]*))([^?#]*)(\?([^#]*))?(#(.*))?`:                                  "must be a URI, such as spiffe://example.com/web",
	`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`:                                                 "must be a condition reason, such as Accepted",
	`(^\*$)|(^(http(s)?):\/\/(((\*\.)?([a-zA-Z0-9\-]+\.)*[a-zA-Z0-9-]+|\*)(:([0-9]{1,5}))?)$)`: "must be an origin, such as https://shop.example.com, or *",

	`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`:                     "must be a condition type, such as Accepted",
	`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[A-Za-z0-9\/\-._~%!$&'()*+,;=:]+$`:                                 "must be a controller name, such as tunnelgateway.dev/controller",
	`^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?$|[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[A-Za-z0-9]+$`:             "must be a protocol, such as HTTP or HTTPS",
	`^Hostname|IPAddress|NamedAddress|[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[A-Za-z0-9\/\-._~%!$&'()*+,;=:]+$`: "must be an address type, such as Hostname",
	`^(System|([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]))$`:          "must be System or a name with a domain, such as example.com/internal",
	`^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`:                   "must be a quantity, such as 100m or 128Mi",
}

// regexInName matches the regular expression in an error about a name. The rest of the
// error has an example.
var regexInName = regexp.MustCompile(`, regex used for validation is '.*'\)`)

// describePattern replaces the regular expression in an error's detail.
func describePattern(err *field.Error) {
	err.Detail = regexInName.ReplaceAllString(err.Detail, ")")
	_, pattern, found := strings.Cut(err.Detail, " should match '")
	if requirement, known := requirements[strings.TrimSuffix(pattern, "'")]; found && known {
		err.Detail = requirement
	}
}
