package plan

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// document is one of the hostnames, with a catch-all.
func document(hostnames ...string) provider.Configuration {
	var c provider.Configuration
	for _, hostname := range hostnames {
		c.Ingress = append(c.Ingress, provider.IngressRule{Hostname: hostname, Service: "http://web:80"})
	}
	c.Ingress = append(c.Ingress, provider.IngressRule{Service: "http_status:404"})
	return c
}

func with(c provider.Configuration, unmodelled map[string]json.RawMessage) provider.Configuration {
	c.UnknownFields = unmodelled
	return c
}

func TestUnified(t *testing.T) {
	warp := map[string]json.RawMessage{"warp-routing": json.RawMessage(`{"enabled":true}`)}
	odd := document("a")
	odd.OriginRequest = provider.OriginRequest{ConnectTimeout: ptr.To(int64(10_000_000)), HTTP2Origin: ptr.To(false), CAPool: "\x1b[31m"}
	odd.Ingress[0].Path = "^/<&>$"
	for name, test := range map[string]struct {
		have, want provider.Configuration
		diff       string
	}{
		"nothing": {provider.Configuration{}, provider.Configuration{}, ""},
		"equal":   {document("a"), document("a"), ""},
		// What nobody models is handed back with every write.
		"equal but for what is not modelled": {with(document("a"), warp), document("a"), ""},
		"to a new tunnel": {provider.Configuration{}, document(), `--- from
+++ to
@@ -0,0 +1,2 @@
+ingress:
+- service: http_status:404
`},
		"to a tunnel that holds only what is not modelled": {with(provider.Configuration{}, warp), document(), `--- from
+++ to
@@ -1,2 +1,4 @@
+ingress:
+- service: http_status:404
 warp-routing:
   enabled: true
`},
		"one more rule, with three lines around it": {with(document("a", "b", "c"), warp), document("a", "b", "bb", "c"), `--- from
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
		"every kind of value, in one line each": {document("a"), odd, `--- from
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

// Whatever changes the hash shows, and nothing else does.
func TestUnifiedShowsEveryDifference(t *testing.T) {
	variants := []provider.Configuration{document(), document("a"), document("a", "b"), document("b", "a"), document("a", "a")}
	access := document("a")
	access.Ingress[0].OriginRequest.Access = &provider.Access{}
	unset := document("a")
	unset.OriginRequest.NoTLSVerify = ptr.To(false)
	variants = append(variants, access, unset, provider.Configuration{OriginRequest: unset.OriginRequest})
	for i, have := range variants {
		for j, want := range variants {
			got, err := unifiedDiff(have, want, "from", "to")
			if err != nil || (got == "") != (i == j) {
				t.Errorf("from %+v to %+v: %q, %v", have, want, got, err)
			}
		}
	}
}

func TestColours(t *testing.T) {
	var out strings.Builder
	writeColoured(&out, "--- from\n+++ to\n@@ -1,2 +1,2 @@\n same\n--- gone\n+++ new\n")
	want := "\x1b[1m--- from\x1b[m\n\x1b[1m+++ to\x1b[m\n\x1b[36m@@ -1,2 +1,2 @@\x1b[m\n same\n\x1b[31m--- gone\x1b[m\n\x1b[32m+++ new\x1b[m\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("colours differ (-want +got):\n%s", diff)
	}
}
