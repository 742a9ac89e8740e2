package dns_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
)

// The mark is "tgw <cluster ID> <mac>", and fits into the comment of a Free zone.
func TestMark(t *testing.T) {
	h := hmac.New(sha256.New, signed.Key)
	for _, part := range []string{"prod", "6f1c", "zone", www, alphaAt} {
		fmt.Fprintf(h, "\x00\x00\x00\x00\x00\x00\x00%c%s", len(part), part)
	}
	mac := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(h.Sum(nil)[:15])
	want := "tgw prod " + strings.ToLower(mac)
	if got := dns.MarkForTest(signed, "zone", www, alphaAt); got != want {
		t.Errorf("the mark is %q, want %q", got, want)
	}
	long := signed
	long.ClusterID = strings.Repeat("c", 63)
	if n := len(dns.MarkForTest(long, "zone", www, alphaAt)); n > 92 {
		t.Errorf("the mark of the longest cluster ID has %d characters, want at most 92", n)
	}
}

// Every part of what the mark signs changes it.
func TestMarkDependsOnEveryPart(t *testing.T) {
	other := func(change func(*dns.Options)) dns.Options {
		o := signed
		change(&o)
		return o
	}
	marks := map[string]string{
		"the original":     dns.MarkForTest(signed, "zone", www, alphaAt),
		"another name":     dns.MarkForTest(signed, "zone", "w.example.com", alphaAt),
		"another target":   dns.MarkForTest(signed, "zone", www, betaAt),
		"another zone":     dns.MarkForTest(signed, "zone2", www, alphaAt),
		"another key":      dns.MarkForTest(other(func(o *dns.Options) { o.Key = []byte("another key") }), "zone", www, alphaAt),
		"another cluster":  dns.MarkForTest(other(func(o *dns.Options) { o.ClusterUID = "77aa" }), "zone", www, alphaAt),
		"another boundary": dns.MarkForTest(signed, "zonew", "ww.example.com", alphaAt),
	}
	seen := map[string]string{}
	for what, mark := range marks {
		if other, exists := seen[mark]; exists {
			t.Errorf("%s and %s have the same mark", what, other)
		}
		seen[mark] = what
	}
}

// A status contains no text from a comment that only resembles a mark.
func TestCommentThatResemblesAMark(t *testing.T) {
	s := newScenario(t)
	s.add(www, "CNAME", betaAt, comment("tgw https://evil.example/?q=<b>\u202e "+strings.Repeat("a", 24)))
	s.set(gateway(alpha, www))
	s.run()
	if f := s.finding(alpha, www); f.Verdict != dns.VerdictRecordConflict || strings.Contains(f.Message, "evil") {
		t.Errorf("the finding is %+v", f)
	}
}
