package envoy

import "testing"

func TestHostnames(t *testing.T) {
	run(t, []row{
		{"GET a.hosts.example.com/a", "200 one GET /a"},
		{"GET a.hosts.example.com/x", "200 two GET /x"},
		{"GET b.hosts.example.com/a", "200 two GET /a"},
		{"GET x.a.hosts.example.com/a", "200 two GET /a"},
		{"GET hosts.example.com/", "404"},
		{"GET x.deep.hosts.example.com/deep", "200 three GET /deep"},
		{"GET x.y.deep.hosts.example.com/deep", "200 three GET /deep"},
		{"GET x.deep.hosts.example.com/x", "200 two GET /x"},
		{"GET deep.hosts.example.com/deep", "200 two GET /deep"},
		{"GET own.hosts.example.com/own", "200 four GET /own"},
		{"GET own.hosts.example.com/x", "404"},
		{"GET a.own.hosts.example.com/own", "200 two GET /own"},
		{"GET other.example.org/", "200 five GET /"},
		{"GET localhost/", "200 five GET /"},
		{"GET example.com/", "404"},
		{"GET unknown.example.com/", "404"},
	})
}

// TestHostsAreComparedWithoutCasePortAndDot shows in which forms the open listener
// accepts a host. A dot at the end does not arrive.
func TestHostsAreComparedWithoutCasePortAndDot(t *testing.T) {
	run(t, []row{
		{"GET A.Hosts.EXAMPLE.com/a", "200 one GET /a"},
		{"GET a.hosts.example.com:443/a", "200 one GET /a"},
		{"GET a.hosts.example.com:8443/a", "200 one GET /a"},
		{"GET a.hosts.example.com./a", "200 one GET /a\n> Host: a.hosts.example.com"},
		{"GET a.hosts.example.com.:8443/a", "200 one GET /a\n> Host: a.hosts.example.com:8443"},
		{"GET X.DEEP.hosts.example.com:80/deep", "200 three GET /deep"},
		{"GET 192.0.2.1/", "200 five GET /"},
		{"GET [2001:db8::1]:8080/", "200 five GET /"},
	})
}

func TestAccess(t *testing.T) {
	b := start(t)
	check := func(t *testing.T, address string, rows []row) {
		for _, row := range rows {
			t.Run(row.name(), func(t *testing.T) {
				if problem := b.check(t, address, row); problem != "" {
					t.Error(problem)
				}
			})
		}
	}
	t.Run("open", func(t *testing.T) {
		check(t, b.open, []row{
			{"GET admin.example.com/", "404"},
			{"GET ADMIN.example.com/", "404"},
			{"GET admin.example.com./", "404"},
			{"GET admin.example.com:8443/", "404"},
			{"GET a.staff.example.com/", "404"},
			{"GET A.STAFF.example.com./", "404"},
			{"GET public.staff.example.com/", "200 two GET /"},
			{"GET PUBLIC.staff.example.com./", "200 two GET /\n> Host: PUBLIC.staff.example.com"},
		})
	})
	t.Run("protected", func(t *testing.T) {
		check(t, b.protected, []row{
			{"GET admin.example.com/", "200 one GET /"},
			{"GET admin.example.com:8443/", "200 one GET /"},
			{"GET ADMIN.example.com/", "403"},
			{"GET admin.example.com./", "403"},
			{"GET admin.example.com.:443/", "403"},
			{"GET a.staff.example.com/", "200 two GET /"},
			{"GET a.b.staff.example.com/", "200 two GET /"},
			{"GET public.staff.example.com/", "404"},
			{"GET A.staff.example.com/", "403"},
			{"GET a.hosts.example.com/a", "404"},
			{"GET other.example.org/", "404"},
		})
	})
}
