package envoy

import "testing"

// TestSchemes shows that the visitor's scheme decides between listeners with the same
// hostname, in any letter case, and that everything but http counts as https.
func TestSchemes(t *testing.T) {
	run(t, []row{
		{"GET both.schemes.example.net/\nX-Forwarded-Proto: http", "301\n< location: https://both.schemes.example.net/"},
		{"GET both.schemes.example.net/\nX-Forwarded-Proto: HTTP", "301\n< location: https://both.schemes.example.net/"},
		{"GET both.schemes.example.net/", "200 one GET /"},
		{"GET both.schemes.example.net/\nX-Forwarded-Proto: HTTPS", "200 one GET /"},
		{"GET both.schemes.example.net/\nX-Forwarded-Proto: ftp", "200 one GET /"},
		{"GET both.schemes.example.net/\nX-Forwarded-Proto: http,http", "200 one GET /"},
		{"GET both.schemes.example.net/health\nX-Forwarded-Proto: http", "200 two GET /health"},
		{"GET both.schemes.example.net/health", "200 two GET /health"},
	})
}

// TestSchemesOfHTTPSListeners shows that the HTTP listener for a wider hostname also
// redirects a hostname that only HTTPS listeners have.
func TestSchemesOfHTTPSListeners(t *testing.T) {
	run(t, []row{
		{"GET https.schemes.example.net/x?q=1\nX-Forwarded-Proto: http", "301\n< location: https://https.schemes.example.net/x?q=1"},
		{"GET https.schemes.example.net/x", "200 one GET /x"},
		{"GET other.example.net/\nX-Forwarded-Proto: http", "301\n< location: https://other.example.net/"},
		{"GET other.example.net/", "404"},
		{"GET own.hosts.example.com/\nX-Forwarded-Proto: http", "404"},
	})
}

// TestSchemesOfHTTPListeners shows that the HTTPS listener for a wider hostname serves
// https in place of a redirect.
func TestSchemesOfHTTPListeners(t *testing.T) {
	run(t, []row{
		{"GET http.secure.example.net/\nX-Forwarded-Proto: http", "301\n< location: https://http.secure.example.net/"},
		{"GET http.secure.example.net/x", "200 one GET /x"},
	})
}
