package envoy

import "testing"

func TestRewrites(t *testing.T) {
	run(t, []row{
		{"GET rewrites.example.com/full/x", "200 one GET /new/path"},
		{"GET rewrites.example.com/full/x?q=a%20b&r=//", "200 one GET /new/path?q=a%20b&r=//"},
		{"GET rewrites.example.com/full-empty/x?q=1", "200 one GET /?q=1"},
		{"GET rewrites.example.com/full-reference/x", "200 one GET /a$0%5C1&b"},
		{"GET rewrites.example.com/caf%C3%A9/x", "200 one GET /cafe/x"},
		{"GET rewrites.example.com/caf%c3%a9/%c3%a9", "200 one GET /cafe/%c3%a9"},
		{"GET rewrites.example.com/escaped/c%20d", "200 one GET /a%20b/c%20d"},
		{"GET rewrites.example.com/a.b+(c)/x?q=1", "200 one GET /x?q=1"},
		{"GET rewrites.example.com/aXb+(c)/x", "404"},
		{"GET rewrites.example.com/42/x?q=1", "200 one GET /number?q=1"},
		{"GET rewrites.example.com/regex\nX-Full: 1", "200 one GET /number"},
	})
}

func TestRewrittenHosts(t *testing.T) {
	run(t, []row{
		{
			"GET rewrites.example.com/host?q=1",
			"200 one GET /host?q=1\n> Host: internal.example.org\n> x-forwarded-host: rewrites.example.com",
		},
		{
			"GET rewrites.example.com/all/x?q=1\nX-Forwarded-Host: first.example.com",
			"200 one GET /new/x?q=1\n> Host: internal.example.org\n> X-Forwarded-Host: first.example.com,rewrites.example.com",
		},
		{
			"GET rewrites.example.com/backend/x",
			"200 one GET /b/x\n> Host: backend.example.org\n> x-forwarded-host: rewrites.example.com",
		},
		{
			"GET rewrites.example.com/rule-and-backend/x",
			"200 one GET /r/x\n> Host: backend.example.org\n> x-forwarded-host: rewrites.example.com",
		},
	})
}

// TestReplacePrefixMatch has the rows of the table in the ReplacePrefixMatch
// documentation.
func TestReplacePrefixMatch(t *testing.T) {
	run(t, []row{
		{"GET xyz.rewrites.example.com/foo/bar", "200 one GET /xyz/bar"},
		{"GET xyz-slash.rewrites.example.com/foo/bar", "200 one GET /xyz/bar"},
		{"GET slash-xyz.rewrites.example.com/foo/bar", "200 one GET /xyz/bar"},
		{"GET slash-xyz-slash.rewrites.example.com/foo/bar", "200 one GET /xyz/bar"},
		{"GET xyz.rewrites.example.com/foo", "200 one GET /xyz"},
		{"GET xyz.rewrites.example.com/foo/", "200 one GET /xyz/"},
		{"GET empty.rewrites.example.com/foo/bar", "200 one GET /bar"},
		{"GET empty.rewrites.example.com/foo/", "200 one GET /"},
		{"GET empty.rewrites.example.com/foo", "200 one GET /"},
		{"GET root.rewrites.example.com/foo/", "200 one GET /"},
		{"GET root.rewrites.example.com/foo", "200 one GET /"},
	})
}

// TestReplacePrefixMatchKeepsTheRest has requests beside that table.
func TestReplacePrefixMatchKeepsTheRest(t *testing.T) {
	run(t, []row{
		{"GET xyz.rewrites.example.com/foo?q=/foo", "200 one GET /xyz?q=/foo"},
		{"GET xyz.rewrites.example.com/foo/foo/foo", "200 one GET /xyz/foo/foo"},
		{"GET xyz.rewrites.example.com/foobar", "404"},
		{"GET xyz-slash.rewrites.example.com/foo", "200 one GET /xyz"},
		{"GET slash-xyz.rewrites.example.com/foo", "200 one GET /xyz"},
		{"GET empty.rewrites.example.com/foo?q=1", "200 one GET /?q=1"},
		{"GET root.rewrites.example.com/foo/bar/", "200 one GET /bar/"},
		{"GET root.rewrites.example.com/foo/%2F%2Fevil.example.com", "200 one GET /%2F%2Fevil.example.com"},
		{"GET every.rewrites.example.com/", "200 one GET /xyz/"},
		{"GET every.rewrites.example.com/a/b?q=1", "200 one GET /xyz/a/b?q=1"},
		{"GET every-root.rewrites.example.com/", "200 one GET /"},
		{"GET every-root.rewrites.example.com/a/b?q=1", "200 one GET /a/b?q=1"},
	})
}
