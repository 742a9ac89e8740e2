package ui

import (
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

func TestThePageOfACluster(t *testing.T) {
	t.Parallel()
	d := theDemo(t)
	p := serve(t, d.environment())
	b := newTab(t)
	b.open(p.link)
	t.Run("equals its plan", func(t *testing.T) {
		var tunnels v1alpha1.TunnelList
		if err := d.kube.List(t.Context(), &tunnels); err != nil {
			t.Fatal(err)
		}
		c := comparison{t, b, p.site, readPlan(t, d.environment()), map[string]*v1alpha1.Tunnel{}}
		for i := range tunnels.Items {
			c.tunnels[tunnels.Items[i].Status.Gateway] = &tunnels.Items[i]
		}
		if len(c.tunnels) < 2 {
			t.Fatalf("the demo has the Tunnels %v", tunnels.Items)
		}
		c.all()
	})
	t.Run("explains a request as plan does", func(t *testing.T) {
		checkWhy(t, b, p.site, question{url: "https://shop.example.com/", headers: []string{"x-canary:always"}}, d.environment())
		checkWhy(t, b, p.site, question{url: "https://team-a.example.com/api/orders", method: "POST"}, d.environment())
	})
}
