package ui

import (
	"net/http"
	"strings"
	"testing"
)

func TestALinkOpensThePageInOneBrowser(t *testing.T) {
	t.Parallel()
	p := serve(t, nil, "-f", "config/samples")
	first, second := newTab(t), newTab(t)
	first.open(p.link)
	if location := eval[string](first, "location.href"); location != p.site+"/" {
		t.Errorf("the address bar shows %s, which must not contain the token", location)
	}
	if !strings.Contains(first.content(), "platform/shared") {
		t.Errorf("the page shows %q", first.content())
	}
	second.allow("403")
	for _, address := range []string{p.link, p.site, p.site + "/events"} {
		if status := second.open(address); status != http.StatusForbidden {
			t.Errorf("%s returns %d in another browser", address, status)
		}
	}
}

func TestAnotherNameOfTheAddressIsRefused(t *testing.T) {
	t.Parallel()
	p := serve(t, nil, "-f", "config/samples")
	b := newTab(t)
	b.allow("421")
	b.allow("the URL's origin was untrustworthy") // Chromium ignores the header if a page is not on loopback
	for _, address := range []string{p.link, p.site + "/"} {
		if status := b.open(strings.Replace(address, "127.0.0.1", rebound, 1)); status != http.StatusMisdirectedRequest {
			t.Errorf("%s as %s returns %d", address, rebound, status)
		}
	}
	// The refused request has not used the link up.
	if status := b.open(p.link); status != http.StatusOK {
		t.Errorf("the link returns %d", status)
	}
}
