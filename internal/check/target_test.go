package check_test

import (
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/check"
)

func TestTargets(t *testing.T) {
	for text, want := range map[string]string{
		"shop.example.com":                   "https://shop.example.com/",
		"SHOP.Example.com.":                  "https://shop.example.com/",
		"shop.example.com/cart?a=1#top":      "https://shop.example.com/cart?a=1",
		"http://shop.example.com":            "http://shop.example.com/",
		"https://shop.example.com:443/":      "https://shop.example.com/",
		"http://shop.example.com:80/":        "http://shop.example.com/",
		"bücher.example.com":                 "https://xn--bcher-kva.example.com/",
		"https://shop.example.com/a%2Fb":     "https://shop.example.com/a%2Fb",
		"shop.example.com/?u=http://a.b/%20": "https://shop.example.com/?u=http://a.b/%20",
	} {
		got, err := check.ParseTarget(text)
		if err != nil || got.String() != want {
			t.Errorf("ParseTarget(%q) = %v, %v, want %s", text, got, err, want)
		}
	}
}

func TestTargetsThatNoVisitorCanOpen(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "valid hostname",
		"*.example.com":               "name one hostname, such as www.example.com",
		"192.0.2.1":                   "is an IP address",
		"https://[2001:db8::1]/":      "is an IP address",
		"shop.example.com:8080":       "port 8080 is not supported",
		"http://shop.example.com:443": "port 443 is not supported",
		"shop.example.com:x":          "invalid port",
		"ftp://shop.example.com":      `scheme "ftp" is not supported`,
		"shop_1.example.com":          "not a valid hostname",
		"shop example.com":            "not",
		"/cart":                       "not a valid hostname",
		"team-a/web":                  "", // a hostname without a dot, and a path
	} {
		got, err := check.ParseTarget(text)
		switch {
		case want == "" && err != nil:
			t.Errorf("ParseTarget(%q): %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("ParseTarget(%q) = %v, %v, want an error with %q", text, got, err, want)
		}
	}
}

func TestTargetsWithAPassword(t *testing.T) {
	for _, text := range []string{"https://me:pass@shop.example.com/", "https://me:pass@shop example.com/"} {
		if _, err := check.ParseTarget(text); err == nil || strings.Contains(err.Error(), "pass") {
			t.Errorf("ParseTarget(%q): %v, want an error without the password", text, err)
		}
	}
}
