package ui

import (
	"strings"
	"testing"
)

func TestThePageSaysThatTheConnectionIsLost(t *testing.T) {
	t.Parallel()
	p := serve(t, nil, "-f", "config/samples")
	b := newTab(t)
	b.allow("ERR_CONNECTION_REFUSED")
	b.allow("ERR_INCOMPLETE_CHUNKED_ENCODING")
	b.open(p.link)
	before := b.content()
	second := b.another() // a second tab with the same session
	second.allow("ERR_CONNECTION_REFUSED")
	second.allow("ERR_INCOMPLETE_CHUNKED_ENCODING")
	second.open(p.site)
	p.stop()
	for _, b := range []*tab{b, second} {
		b.waitFor("the banner after tunnel-gateway ui has ended", `!document.getElementById("lost").hidden`)
		if banner := b.text("#lost")[0]; !strings.Contains(banner, "lost since") {
			t.Errorf("the banner says %q", banner)
		}
		if after := b.content(); after != before {
			t.Errorf("the page shows %q without connection, want %q", after, before)
		}
	}
}
