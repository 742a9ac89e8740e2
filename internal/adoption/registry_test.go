package adoption

import "testing"

func TestClaimsOfExternalDNS(t *testing.T) {
	for _, test := range []struct {
		registry, name string
		want           bool
	}{
		{"cname-www.example.com", "www.example.com", true},
		{"a-www.example.com", "www.example.com", true},
		{"www.example.com", "www.example.com", true},
		{"edns-cname.www.example.com", "www.example.com", true},
		{"edns-cname.example.com", "example.com", true},
		{"edns-aaaa.example.com", "example.com", true},
		{"edns-cname.wildcard.example.com", "*.example.com", true},
		{"cname-*.example.com", "*.example.com", true},
		{"edns-cname.www.example.com", "example.com", false},
		{"edns-cname.www.example.com", "*.example.com", false},
		{"cname-www.example.com", "example.com", false},
		{"edns-mx.example.com", "example.com", false},
		{"edns-cname.xwww.example.com", "www.example.com", false},
		{"edns-cname.www.example.com", "ww.example.com", false},
	} {
		if got := claims(test.registry, test.name); got != test.want {
			t.Errorf("claims(%q, %q) = %t, want %t", test.registry, test.name, got, test.want)
		}
	}
}
