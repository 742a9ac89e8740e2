package envoy

import "testing"

// TestConformanceOfCORS has the requests and the responses from the conformance test
// HTTPRouteCORS.
func TestConformanceOfCORS(t *testing.T) {
	run(t, []row{
		{preflight("/cors-1", "https://www.foo.com", "GET", "x-header-1, x-header-2"), allCORSHeaders("https://www.foo.com")},
		{preflight("/cors-1", "https://www.bar.com", "GET", "x-header-1, x-header-2"), allCORSHeaders("https://www.bar.com")},
		{preflight("/cors-1", "https://xpto.www.bar.com", "GET", "x-header-1, x-header-2"), allCORSHeaders("https://xpto.www.bar.com")},
		{
			preflight("/cors-1", "https://foobar.com", "GET", ""), // without Access-Control-Allow-Origin
			`200
			< access-control-allow-credentials: true
			< access-control-allow-methods: GET, OPTIONS
			< access-control-allow-headers: x-header-1, x-header-2
			< access-control-max-age: 3600`,
		},
		{
			"GET cors.example.com/cors-1\nOrigin: https://www.foo.com\naccess-control-request-method: GET\naccess-control-request-headers: x-header-1, x-header-2",
			"200 one GET /cors-1\n" + exposed("https://www.foo.com"),
		},
		{"GET cors.example.com/cors-1\nOrigin: https://www.bar.com", "200 one GET /cors-1\n" + exposed("https://www.bar.com")},
		{"GET cors.example.com/cors-1\nOrigin: https://foobar.com", "200 one GET /cors-1"},
		{
			preflight("/cors-2", "https://www.foo.com", "POST", ""),
			"200\n< access-control-allow-origin: https://www.foo.com\n< access-control-allow-methods: POST\n< access-control-max-age: 5",
		},
		{
			preflight("/cors-wildcard-origin", "https://foobar.com", "PUT", ""),
			"200\n< access-control-allow-origin: https://foobar.com\n< access-control-allow-methods: PUT\n< access-control-max-age: 5",
		},
		{
			preflight("/cors-wildcard-origin", "https://foobar.com:12345", "PUT", ""),
			"200\n< access-control-allow-origin: https://foobar.com:12345\n< access-control-allow-methods: PUT\n< access-control-max-age: 5",
		},
		{
			"PUT cors.example.com/cors-wildcard-origin\nOrigin: https://foobar.com:12345",
			"200 one PUT /cors-wildcard-origin\n< access-control-allow-origin: https://foobar.com:12345",
		},
		{
			preflight("/cors-wildcard-methods-headers", "https://other.foo.com", "PUT", "x-header-1, x-header-2"),
			`200
			< access-control-allow-origin: https://other.foo.com
			< access-control-allow-credentials: true
			< access-control-allow-methods: PUT
			< access-control-allow-headers: x-header-1, x-header-2
			< access-control-max-age: 5`,
		},
		{
			preflight("/cors-wildcard-methods-headers-unauth", "https://other.foo.com", "PUT", "x-header-1, x-header-2"),
			`200
			< access-control-allow-origin: https://other.foo.com
			< access-control-allow-methods: PUT
			< access-control-allow-headers: x-header-1, x-header-2
			< access-control-max-age: 5`,
		},
		{
			"GET cors.example.com/cors-wildcard-methods-headers\nOrigin: https://other.foo.com",
			"200 one GET /cors-wildcard-methods-headers\n< access-control-allow-origin: https://other.foo.com\n< access-control-allow-credentials: true",
		},
		{
			"GET cors.example.com/cors-wildcard-methods-headers-unauth\nOrigin: https://other.foo.com",
			"200 one GET /cors-wildcard-methods-headers-unauth\n< access-control-allow-origin: https://other.foo.com",
		},
	})
}

// preflight returns a CORS preflight request.
func preflight(path, origin, method, headers string) string {
	request := "OPTIONS cors.example.com" + path + "\nOrigin: " + origin + "\naccess-control-request-method: " + method
	if headers != "" {
		request += "\naccess-control-request-headers: " + headers
	}
	return request
}

func allCORSHeaders(origin string) string {
	return `200
		< access-control-allow-origin: ` + origin + `
		< access-control-allow-credentials: true
		< access-control-allow-methods: GET, OPTIONS
		< access-control-allow-headers: x-header-1, x-header-2
		< access-control-max-age: 3600
		< access-control-expose-headers: x-header-3, x-header-4`
}

func exposed(origin string) string {
	return "< access-control-allow-origin: " + origin + "\n< access-control-allow-credentials: true\n< access-control-expose-headers: x-header-3, x-header-4"
}

func TestOriginsOfCORS(t *testing.T) {
	for _, origin := range []string{"https://shop.example.org", "http://a.example.net:8080", "http://a.b.example.net:8080", "http://example.net", "https://shop.example.org:443", "http://example.net:80", "https://a.wild.example.org:443"} {
		run(t, []row{{"GET cors.example.com/origins\nOrigin: " + origin, "200 one GET /origins\n< access-control-allow-origin: " + origin}})
	}
	for _, origin := range []string{
		"https://shop.example.org:8443", "http://shop.example.org", "http://example.net:8080", "http://a.example.net", "http://a.example.net:80",
		"http://evil.org/.example.net:8080", "http://evil.org:1.example.net:8080", "https://shop.example.org.evil.org", "null",
	} {
		run(t, []row{{"GET cors.example.com/origins\nOrigin: " + origin, "200 one GET /origins"}})
	}
}

func TestCORS(t *testing.T) {
	run(t, []row{
		{"OPTIONS cors.example.com/cors-1\nOrigin: https://www.foo.com", "200 one OPTIONS /cors-1\n" + exposed("https://www.foo.com")},
		{"OPTIONS cors.example.com/cors-1", "200 one OPTIONS /cors-1"},
		{
			"GET cors.example.com/expose\nOrigin: https://a.org",
			"200 one GET /expose\n< access-control-allow-origin: https://a.org\n< access-control-expose-headers: *",
		},
		{
			"GET cors.example.com/expose-with-credentials\nOrigin: https://a.org",
			"200 one GET /expose-with-credentials\n< access-control-allow-origin: https://a.org\n< access-control-allow-credentials: true",
		},
		// When the backend itself sends the header, Envoy does not add a second line.
		{
			"GET cors.example.com/cors-2\nOrigin: https://www.foo.com\nRespond: Access-Control-Allow-Origin: https://backend.org",
			"200 one GET /cors-2\n< Access-Control-Allow-Origin: https://www.foo.com",
		},
		{preflight("/post-only", "https://a.org", "POST", ""), "404"},
		{
			"GET cors.example.com/modified\nOrigin: https://www.foo.com",
			"200 one GET /modified\n< x-set: 1\n< access-control-allow-origin: https://www.foo.com",
		},
		{
			preflight("/modified", "https://www.foo.com", "GET", ""),
			"200\n< access-control-allow-origin: https://www.foo.com\n< access-control-allow-methods: GET\n< access-control-max-age: 5",
		},
		// Envoy applies no policy to responses without a backend.
		{"GET cors.example.com/unresolved\nOrigin: https://www.foo.com", "500"},
	})
}
