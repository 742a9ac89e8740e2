package provider

import "testing"

func TestTunnelHostnameContainsItsID(t *testing.T) {
	id := TunnelID("f70ff985-a4ef-4643-bbbc-4a0ed4fc8415")
	if got, want := id.Hostname(), "f70ff985-a4ef-4643-bbbc-4a0ed4fc8415.cfargotunnel.com"; got != want {
		t.Errorf("Hostname = %q, want %q", got, want)
	}
}
