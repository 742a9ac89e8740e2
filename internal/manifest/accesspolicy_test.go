package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// accessPolicy returns an AccessPolicy with the given spec, in flow style.
func accessPolicy(spec string) string {
	return "apiVersion: tunnelgateway.dev/v1alpha1\nkind: AccessPolicy\nmetadata: {name: admin}\nspec: " + spec + "\n"
}

// target returns the targetRefs of an AccessPolicy with one target, in flow style.
func target(fields string) string {
	return "targetRefs: [{group: gateway.networking.k8s.io, " + fields + "}]"
}

// TestInvalidAccessPoliciesAreRejected has an invalid object for every rule and bound in the
// schema.
func TestInvalidAccessPoliciesAreRejected(t *testing.T) {
	const (
		gateway  = "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}]"
		kinds    = "targetRefs: Invalid value: each target must be a Gateway or a ListenerSet of the group gateway.networking.k8s.io"
		duration = "must be a positive number of whole minutes, written in hours and minutes, of at most 730h, such as 8h or 30m"
		origin   = "must be * or an origin without a path, such as https://app.example.com"
		header   = "must be * or the name of a header, such as authorization"
	)
	cors := func(fields string) string { return "{" + gateway + ", policies: [a], cors: {" + fields + "}}" }
	session := func(value string) string { return "{" + gateway + ", policies: [a], sessionDuration: " + value + "}" }
	for name, test := range map[string]struct {
		spec string
		want []string // without the prefix "spec."
	}{
		"empty":            {"{}", []string{"policies: Required value", "targetRefs: Required value"}},
		"no targets":       {"{targetRefs: [], policies: [a]}", []string{"targetRefs: Invalid value: 0: spec.targetRefs in body should have at least 1 items"}},
		"17 targets":       {"{targetRefs: [" + strings.Repeat("{group: gateway.networking.k8s.io, kind: Gateway, name: a},", 17) + "], policies: [a]}", []string{"targetRefs: Too many: 17: must have at most 16 items"}},
		"a route":          {"{" + target("kind: HTTPRoute, name: web") + ", policies: [a]}", []string{kinds}},
		"another group":    {"{targetRefs: [{group: example.com, kind: Gateway, name: web}], policies: [a]}", []string{kinds}},
		"other namespace":  {"{" + target("kind: Gateway, name: web, namespace: other") + ", policies: [a]}", []string{"targetRefs[0].namespace: Forbidden: unknown field"}},
		"no policies":      {"{" + gateway + ", policies: []}", []string{"policies: Invalid value: 0: spec.policies in body should have at least 1 items"}},
		"one policy twice": {"{" + gateway + ", policies: [a, a]}", []string{`policies[1]: Duplicate value: "a"`}},
		"a policy's email": {"{" + gateway + ", policies: [a@example.com]}", []string{`policies[0]: Invalid value: "a@example.com": must be a name in lower case, such as employees`}},
		"a policy's rule":  {"{" + gateway + ", policies: [{include: []}]}", []string{"policies[0].include: Forbidden: unknown field", `policies[0]: Invalid value: "object": spec.policies[0] in body must be of type string: "object"`}},

		"a session of seconds":     {session("30s"), []string{`sessionDuration: Invalid value: "30s": ` + duration}},
		"no session":               {session("0h"), []string{`sessionDuration: Invalid value: "0h": ` + duration}},
		"a session over 730 hours": {session("731h"), []string{`sessionDuration: Invalid value: "731h": ` + duration}},

		"no origins":                  {cors("allowMethods: [GET]"), []string{"cors.allowOrigins: Required value"}},
		"an origin with a path":       {cors("allowOrigins: [https://a.example/b]"), []string{`cors.allowOrigins[0]: Invalid value: "https://a.example/b": ` + origin}},
		"an origin without a scheme":  {cors("allowOrigins: [a.example]"), []string{`cors.allowOrigins[0]: Invalid value: "a.example": ` + origin}},
		"a method in lower case":      {cors("allowOrigins: ['*'], allowMethods: [get]"), []string{`cors.allowMethods[0]: Unsupported value: "get": supported values: "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"`}},
		"a header with a colon":       {cors("allowOrigins: ['*'], allowHeaders: ['a:']"), []string{`cors.allowHeaders[0]: Invalid value: "a:": ` + header}},
		"a negative age":              {cors("allowOrigins: ['*'], maxAge: -1"), []string{"cors.maxAge: Invalid value: -1: spec.cors.maxAge in body should be greater than or equal to 0"}},
		"an age of more than a day":   {cors("allowOrigins: ['*'], maxAge: 86401"), []string{"cors.maxAge: Invalid value: 86401: spec.cors.maxAge in body should be less than or equal to 86400"}},
		"credentials for each origin": {cors("allowOrigins: ['*'], allowCredentials: true"), []string{"cors: Invalid value: cors has allowCredentials with the origin *, which browsers refuse: list the origins, or remove allowCredentials"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := parseErrors(t, accessPolicy(test.spec))
			for i, line := range got {
				got[i] = strings.TrimPrefix(line, "in.yaml: document 1: AccessPolicy default/admin: spec.")
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestValidAccessPoliciesAreAccepted has objects at the validation's bounds.
func TestValidAccessPoliciesAreAccepted(t *testing.T) {
	for name, fields := range map[string]string{
		"a listener of a set":  target("kind: ListenerSet, name: team, sectionName: admin"),
		"a Gateway":            target("kind: Gateway, name: web"),
		"the longest session":  target("kind: Gateway, name: web") + ", sessionDuration: 730h",
		"the shortest session": target("kind: Gateway, name: web") + ", sessionDuration: 1m",
		"every origin":         target("kind: Gateway, name: web") + ", cors: {allowOrigins: ['*'], allowCredentials: false}",
		"credentials":          target("kind: Gateway, name: web") + ", cors: {allowOrigins: ['http://localhost:3000'], allowCredentials: true, maxAge: 0}",
	} {
		t.Run(name, func(t *testing.T) {
			parseOne[*v1alpha1.AccessPolicy](t, accessPolicy("{policies: [employees], "+fields+"}"))
		})
	}
}
