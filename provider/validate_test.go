package provider

import (
	"errors"
	"testing"
)

func TestValidateIsAsStrictAsTheConnector(t *testing.T) {
	const origin = "http://web.default.svc.cluster.local:80"
	catchAll := IngressRule{Service: "http_status:404"}
	negative := int64(-1)
	access := func(a AccessSettings) OriginRequest { return OriginRequest{Access: &a} }

	tests := map[string]struct {
		rules []IngressRule
		// wantRule is the invalid rule's index, or valid.
		wantRule int
	}{
		"no rules":                    {nil, valid},
		"catch-all alone":             {[]IngressRule{catchAll}, valid},
		"catch-all by asterisk":       {[]IngressRule{{Hostname: "*", Service: origin}}, valid},
		"exact host":                  {[]IngressRule{{Hostname: "a.example.com", Service: origin}, catchAll}, valid},
		"wildcard host":               {[]IngressRule{{Hostname: "*.example.com", Service: origin}, catchAll}, valid},
		"path for every host":         {[]IngressRule{{Path: "^/api", Service: origin}, catchAll}, valid},
		"path for the asterisk":       {[]IngressRule{{Hostname: "*", Path: "^/api", Service: origin}, catchAll}, valid},
		"asterisk without a dot":      {[]IngressRule{{Hostname: "*foo.com", Service: origin}, catchAll}, valid},
		"upper case":                  {[]IngressRule{{Hostname: "A.Example.COM.", Service: origin}, catchAll}, valid},
		"duplicate":                   {[]IngressRule{{Hostname: "a", Service: origin}, {Hostname: "a", Service: origin}, catchAll}, valid},
		"IPv6 literal":                {[]IngressRule{{Hostname: "::1", Service: origin}, catchAll}, valid},
		"unknown scheme":              {[]IngressRule{{Service: "gopher://web"}}, valid},
		"query and user information":  {[]IngressRule{{Service: "http://user:pw@web?q=1"}}, valid},
		"unix socket":                 {[]IngressRule{{Service: "unix:/run/web.sock"}}, valid},
		"unix socket with TLS":        {[]IngressRule{{Service: "unix+tls:/run/web.sock"}}, valid},
		"named service":               {[]IngressRule{{Service: "hello_world"}}, valid},
		"lowest status":               {[]IngressRule{{Service: "http_status:100"}}, valid},
		"highest status":              {[]IngressRule{{Service: "http_status:999"}}, valid},
		"negative duration":           {[]IngressRule{{Service: origin, OriginRequest: OriginRequest{ConnectTimeout: &negative}}}, valid},
		"optional access":             {[]IngressRule{{Service: origin, OriginRequest: access(AccessSettings{AUDTag: []string{"x"}})}}, valid},
		"required access, no tag":     {[]IngressRule{{Service: origin, OriginRequest: access(AccessSettings{Required: true})}}, valid},
		"required access, complete":   {[]IngressRule{{Service: origin, OriginRequest: access(AccessSettings{true, "team", []string{"x"}})}}, valid},
		"required access, no team":    {[]IngressRule{{Service: origin, OriginRequest: access(AccessSettings{Required: true, AUDTag: []string{"x"}})}}, 0},
		"host with a port":            {[]IngressRule{{Hostname: "a.example.com:80", Service: origin}, catchAll}, 0},
		"inner wildcard":              {[]IngressRule{{Hostname: "a.*.com", Service: origin}, catchAll}, 0},
		"second wildcard":             {[]IngressRule{{Hostname: "*.*.com", Service: origin}, catchAll}, 0},
		"last rule with a host":       {[]IngressRule{{Hostname: "a.example.com", Service: origin}}, 0},
		"last rule with a path":       {[]IngressRule{{Hostname: "a", Service: origin}, {Path: "/", Service: origin}}, 1},
		"earlier catch-all":           {[]IngressRule{catchAll, catchAll}, 0},
		"earlier catch-all, asterisk": {[]IngressRule{{Hostname: "a", Service: origin}, {Hostname: "*", Service: origin}, catchAll}, 1},
		"bad expression":              {[]IngressRule{{Hostname: "a", Path: "(", Service: origin}, catchAll}, 0},
		"look-ahead":                  {[]IngressRule{{Hostname: "a", Path: "(?=x)", Service: origin}, catchAll}, 0},
		"service with a slash":        {[]IngressRule{{Service: origin + "/"}}, 0},
		"service with a path":         {[]IngressRule{{Service: origin + "/api"}}, 0},
		"service without a scheme":    {[]IngressRule{{Service: "web:80"}}, 0},
		"service without a host":      {[]IngressRule{{Service: "http://"}}, 0},
		"empty service":               {[]IngressRule{{}}, 0},
		"service not a URL":           {[]IngressRule{{Service: "http://web:port"}}, 0},
		"status too low":              {[]IngressRule{{Service: "http_status:99"}}, 0},
		"status too high":             {[]IngressRule{{Service: "http_status:1000"}}, 0},
		"status not a number":         {[]IngressRule{{Service: "http_status:ok"}}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := Validate(Configuration{Ingress: test.rules})
			if test.wantRule == valid {
				if err != nil {
					t.Errorf("got %v, want a valid configuration", err)
				}
				return
			}
			invalid, ok := errors.AsType[*InvalidError](err)
			if !ok || invalid.Rule != test.wantRule {
				t.Errorf("got %v, want rule %d rejected", err, test.wantRule)
			}
		})
	}
}

// valid is the wantRule for a configuration without an invalid rule.
const valid = -1

func FuzzValidate(f *testing.F) {
	f.Add("*.example.com", "^/api", "http://web:80")
	f.Add("[::1]:80", "(?P<", "http_status:1e3")
	f.Fuzz(func(t *testing.T, hostname, path, service string) {
		rules := []IngressRule{{Hostname: hostname, Path: path, Service: service}, {Service: "http_status:404"}}
		err := Validate(Configuration{Ingress: rules})
		if _, ok := errors.AsType[*InvalidError](err); err != nil && !ok {
			t.Errorf("%T is not an InvalidError", err)
		}
	})
}
