package plan

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// configuration returns a configuration with a rule for each hostname and a catch-all
// rule.
func configuration(hostnames ...string) provider.Configuration {
	var c provider.Configuration
	for _, hostname := range hostnames {
		c.Ingress = append(c.Ingress, provider.IngressRule{Hostname: hostname, Service: "http://web:80"})
	}
	c.Ingress = append(c.Ingress, provider.IngressRule{Service: "http_status:404"})
	return c
}

// with returns c with unknown fields.
func with(c provider.Configuration, unknown map[string]json.RawMessage) provider.Configuration {
	c.UnknownFields = unknown
	return c
}

func TestUnifiedDiffOfTwoConfigurations(t *testing.T) {
	warp := map[string]json.RawMessage{"warp-routing": json.RawMessage(`{"enabled":true}`)}
	odd := configuration("a")
	odd.OriginRequest = provider.OriginRequest{ConnectTimeout: ptr.To(int64(10_000_000)), HTTP2Origin: ptr.To(false), CAPool: "\x1b[31m"}
	odd.Ingress[0].Path = "^/<&>$"
	for name, test := range map[string]struct {
		have, want provider.Configuration
		diff       string
	}{
		"empty": {provider.Configuration{}, provider.Configuration{}, ""},
		"equal": {configuration("a"), configuration("a"), ""},
		// A push keeps unknown fields.
		"equal except for unknown fields": {with(configuration("a"), warp), configuration("a"), ""},
		"new tunnel": {provider.Configuration{}, configuration(), `--- from
+++ to
@@ -0,0 +1,2 @@
+ingress:
+- service: http_status:404
`},
		"tunnel with only unknown fields": {with(provider.Configuration{}, warp), configuration(), `--- from
+++ to
@@ -1,2 +1,4 @@
+ingress:
+- service: http_status:404
 warp-routing:
   enabled: true
`},
		"additional rule, with three lines of context": {with(configuration("a", "b", "c"), warp), configuration("a", "b", "bb", "c"), `--- from
+++ to
@@ -3,6 +3,8 @@
   service: http://web:80
 - hostname: b
   service: http://web:80
+- hostname: bb
+  service: http://web:80
 - hostname: c
   service: http://web:80
 - service: http_status:404
`},
		"values of all types": {configuration("a"), odd, `--- from
+++ to
@@ -1,4 +1,9 @@
 ingress:
 - hostname: a
+  path: ^/<&>$
   service: http://web:80
 - service: http_status:404
+originRequest:
+  caPool: "\e[31m"
+  connectTimeout: 10000000
+  http2Origin: false
`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := unifiedDiff(test.have, test.want, "from", "to")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.diff, got); diff != "" {
				t.Errorf("the diff differs (-want +got):\n%s", diff)
			}
		})
	}
}

// The diff is empty if and only if the hashes are equal.
func TestUnifiedDiffShowsEveryDifference(t *testing.T) {
	variants := []provider.Configuration{configuration(), configuration("a"), configuration("a", "b"), configuration("b", "a"), configuration("a", "a")}
	access := configuration("a")
	access.Ingress[0].OriginRequest.Access = &provider.AccessSettings{}
	unset := configuration("a")
	unset.OriginRequest.NoTLSVerify = ptr.To(false)
	variants = append(variants, access, unset, provider.Configuration{OriginRequest: unset.OriginRequest})
	for i, have := range variants {
		for j, want := range variants {
			got, err := unifiedDiff(have, want, "from", "to")
			if err != nil || (got == "") != (i == j) {
				t.Errorf("diff of %+v and %+v = %q, %v", have, want, got, err)
			}
		}
	}
}

func TestDiffHasAColorForEachKindOfLine(t *testing.T) {
	var out strings.Builder
	writeColored(&out, "--- from\n+++ to\n@@ -1,2 +1,2 @@\n same\n--- gone\n+++ new\n")
	want := "\x1b[1m--- from\x1b[m\n\x1b[1m+++ to\x1b[m\n\x1b[36m@@ -1,2 +1,2 @@\x1b[m\n same\n\x1b[31m--- gone\x1b[m\n\x1b[32m+++ new\x1b[m\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("the output differs (-want +got):\n%s", diff)
	}
}
