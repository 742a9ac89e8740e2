package web

import "testing"

func TestLinksContainAnyHostname(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{hostnameLink("infra/shared", ""), "/hostname?gateway=infra%2Fshared&name=%2A"},
		{hostnameLink("infra/shared", "*.example.com"), "/hostname?gateway=infra%2Fshared&name=%2A.example.com"},
		{hostnamesLink("", ""), "/hostnames"},
		{hostnamesLink("infra/shared", "shop"), "/hostnames?gateway=infra%2Fshared&namespace=shop"},
		{whyLink("shop.example.com"), "/why?url=https%3A%2F%2Fshop.example.com%2F"},
		{whyLink("*.example.com"), "/why?url=https%3A%2F%2Fexample.example.com%2F"},
		{whyLink(""), "/why?url=https%3A%2F%2Fhost.example.com%2F"},
		{pictureOfNamespace("infra/shared", "shop"), "/picture?gateway=infra%2Fshared&namespace=shop"},
		{hostnameIn("*"), ""},
		{hostnameIn("*.Example.com"), "*.example.com"},
	} {
		if test.got != test.want {
			t.Errorf("got %s, want %s", test.got, test.want)
		}
	}
}
