package envoy

import "testing"

func TestRedirects(t *testing.T) {
	run(t, []row{
		{"GET redirects.example.com/default", "302\n< location: https://redirects.example.com/default"},
		{"POST redirects.example.com/default/x?q=1", "302\n< location: https://redirects.example.com/default/x?q=1"},
		{"GET redirects.example.com/301", "301\n< location: https://to.example.com/301"},
		{"GET redirects.example.com/302", "302\n< location: https://to.example.com/302"},
		{"GET redirects.example.com/303", "303\n< location: https://to.example.com/303"},
		{"GET redirects.example.com/307", "307\n< location: https://to.example.com/307"},
		{"GET redirects.example.com/308", "308\n< location: https://to.example.com/308"},
		{"GET redirects.example.com/http", "302\n< location: http://redirects.example.com/http"},
		{"GET redirects.example.com/https?a=b", "302\n< location: https://to.example.com/https?a=b"},
		{"GET redirects.example.com/port", "302\n< location: https://redirects.example.com:8443/port"},
		{"GET redirects.example.com/http-8080", "302\n< location: http://redirects.example.com:8080/http-8080"},
		{"GET redirects.example.com/http-80", "302\n< location: http://redirects.example.com/http-80"},
		{"GET redirects.example.com/http-443", "302\n< location: http://redirects.example.com:443/http-443"},
		{"GET redirects.example.com/default\nX-Forwarded-Proto: http", "302\n< location: http://redirects.example.com/default"},
		{"GET redirects.example.com/port\nX-Forwarded-Proto: http", "302\n< location: http://redirects.example.com:8443/port"},
		{"GET redirects.example.com/port-443", "302\n< location: https://redirects.example.com/port-443"},
		{"GET redirects.example.com/port-443\nX-Forwarded-Proto: http", "302\n< location: http://redirects.example.com:443/port-443"},
		{"GET redirects.example.com/port-80", "302\n< location: https://redirects.example.com:80/port-80"},
		{"GET redirects.example.com/port-80\nX-Forwarded-Proto: http", "302\n< location: http://redirects.example.com/port-80"},
		{"GET redirects.example.com/host-443", "302\n< location: https://to.example.com/host-443"},
		{"GET redirects.example.com/everything/x?q=%20", "308\n< location: http://to.example.com:8080/all?q=%20"},
	})
}

func TestRedirectsToAnotherPath(t *testing.T) {
	run(t, []row{
		{"GET redirects.example.com/full/x", "302\n< location: https://redirects.example.com/new/path"},
		{"GET redirects.example.com/full/x?q=1", "302\n< location: https://redirects.example.com/new/path?q=1"},
		{"GET redirects.example.com/full-empty?q=1", "302\n< location: https://redirects.example.com/?q=1"},
		{"GET redirects.example.com/full-root?q=1", "302\n< location: https://redirects.example.com/?q=1"},
		{"GET redirects.example.com/full-escaped?q=1", "302\n< location: https://redirects.example.com/a%20b?q=1"},
		{"GET redirects.example.com/prefix", "302\n< location: https://redirects.example.com/new"},
		{"GET redirects.example.com/prefix/", "302\n< location: https://redirects.example.com/new/"},
		{"GET redirects.example.com/prefix/x?q=1", "302\n< location: https://redirects.example.com/new/x?q=1"},
		{"GET redirects.example.com/prefix?q=1", "302\n< location: https://redirects.example.com/new?q=1"},
		{"GET redirects.example.com/prefix-slash", "302\n< location: https://redirects.example.com/new"},
		{"GET redirects.example.com/prefix-slash/x", "302\n< location: https://redirects.example.com/new/x"},
		{"GET redirects.example.com/prefix-empty", "302\n< location: https://redirects.example.com/"},
		{"GET redirects.example.com/prefix-empty/", "302\n< location: https://redirects.example.com/"},
		{"GET redirects.example.com/prefix-empty/x?q=1", "302\n< location: https://redirects.example.com/x?q=1"},
		{"GET redirects.example.com/prefix-root?q=1", "302\n< location: https://redirects.example.com/?q=1"},
		{"GET redirects.example.com/prefix-root/x/", "302\n< location: https://redirects.example.com/x/"},
		{"GET redirects.example.com/", "302\n< location: https://to.example.com/below/"},
		{"GET redirects.example.com/rest/x", "302\n< location: https://to.example.com/below/rest/x"},
	})
}

// TestRedirectsKeepEscapes shows that a redirect does not change escapes in the path that
// it keeps.
func TestRedirectsKeepEscapes(t *testing.T) {
	run(t, []row{
		{"GET redirects.example.com/caf%C3%A9/x", "302\n< location: https://redirects.example.com/cafe/x"},
		{"GET redirects.example.com/caf%c3%a9/x", "302\n< location: https://redirects.example.com/cafe/x"},
		{"GET redirects.example.com/default/a%20b", "302\n< location: https://redirects.example.com/default/a%20b"},
		{"GET redirects.example.com/prefix/a%2Fb", "302\n< location: https://redirects.example.com/new/a%2Fb"},
		{"GET redirects.example.com/default/%E2%82%AC", "302\n< location: https://redirects.example.com/default/%E2%82%AC"},
		{"GET redirects.example.com/default/a;b=c,d:e@f!$&'()*+", "302\n< location: https://redirects.example.com/default/a;b=c,d:e@f!$&'()*+"},
		{"GET redirects.example.com/default/?q=a%20b+c", "302\n< location: https://redirects.example.com/default/?q=a%20b+c"},
	})
}

func TestRedirectsBelowAWildcard(t *testing.T) {
	run(t, []row{
		{"GET a.redirects.example.com/path/x?q=1", "302\n< location: https://a.redirects.example.com/new?q=1"},
		{"GET a.redirects.example.com/port", "302\n< location: https://a.redirects.example.com:8443/port"},
		{"GET a.b.redirects.example.com/https", "301\n< location: https://a.b.redirects.example.com/new"},
		{"GET a.b.redirects.example.com/http", "301\n< location: http://a.b.redirects.example.com/http"},
	})
}

// TestRedirectsOfHostsWithAPort shows that a redirect names a route's exact hostname
// without the visitor's port.
func TestRedirectsOfHostsWithAPort(t *testing.T) {
	run(t, []row{
		{"GET redirects.example.com:8443/default", "302\n< location: https://redirects.example.com/default"},
		{"GET redirects.example.com:8443/port", "302\n< location: https://redirects.example.com:8443/port"},
		{"GET redirects.example.com:8443/301", "301\n< location: https://to.example.com/301"},
		{"GET REDIRECTS.example.com./default", "302\n< location: https://redirects.example.com/default"},
	})
}

// TestRedirectsBelowAWildcardReplaceThePort shows that a redirect that names a scheme or a port
// determines the port. The hostname is known only from the request, so the default port is written
// where the request has another one.
func TestRedirectsBelowAWildcardReplaceThePort(t *testing.T) {
	b := start(t)
	for request, want := range map[string]string{
		"GET a.redirects.example.com:8080/path":                             "302\n< location: https://a.redirects.example.com:8080/new",
		"GET a.redirects.example.com:8080/http":                             "301\n< location: http://a.redirects.example.com:80/http",
		"GET a.redirects.example.com:8080/port":                             "302\n< location: https://a.redirects.example.com:8443/port",
		"GET a.redirects.example.com:8080/port-80\nX-Forwarded-Proto: http": "302\n< location: http://a.redirects.example.com:80/port-80",
		"GET a.redirects.example.com:8080/port-80":                          "302\n< location: https://a.redirects.example.com:80/port-80",
		"GET a.redirects.example.com:8080/https":                            "301\n< location: https://a.redirects.example.com:443/new",
		"GET a.redirects.example.com:443/https":                             "301\n< location: https://a.redirects.example.com:443/new",
	} {
		r := parseRequest(request)
		if got := send(t, b.open, r.text()).describe(r); got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
}
