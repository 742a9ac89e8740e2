package check

import "testing"

func TestAMessageNamesAWholeHostname(t *testing.T) {
	const message = "a.example.com, *.shop.example.com: an A record is not managed by this controller. b.example.com: no zone."
	for hostname, want := range map[string]bool{
		"a.example.com": true, "*.shop.example.com": true, "b.example.com": true,
		"example.com": false, "shop.example.com": false, "com": false,
	} {
		if got := names(message, hostname); got != want {
			t.Errorf("names(%q) = %t, want %t", hostname, got, want)
		}
	}
}
