package ui

import (
	"strings"
	"testing"
)

func TestThePageShowsACluster(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	t.Run("that equals its plan", func(t *testing.T) { testEqualsPlan(t, d) })
}

func testEqualsPlan(t *testing.T, d *demo) {
	p := serve(t, d.environment())
	b := newTab(t)
	b.open(p.link)
	overview := b.content()
	for _, g := range d.plan(t).Gateways {
		if !strings.Contains(overview, g.Namespace+"/"+g.Name) || !strings.Contains(overview, g.DataPlane) {
			t.Errorf("the overview does not show Gateway %s/%s with the data plane %s: %s", g.Namespace, g.Name, g.DataPlane, overview)
		}
	}
}
