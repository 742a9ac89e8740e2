package operation

import (
	"strings"
	"testing"
)

// A client that can write a Gateway's or Tunnel's status must not control the terminal of
// a user who waits for it.
func TestMessagesDoNotControlTheTerminal(t *testing.T) {
	const hostile = "no\x1b]0;title\a\r\x1b[2Kready\u009b1A\nGateway infra/shared is served"
	for _, found := range []objects{
		serving(gatewayIs("Programmed", "False", hostile)),
		serving(gatewayIs("Accepted", "False", hostile)),
		serving(notReady("Contested", hostile), notApplied),
		serving(tunnelIs("DataPlaneApplied", "False", "DataPlaneChanging", hostile)),
	} {
		e := Wait.effect(found)
		text := e.refused + e.outstanding
		if !strings.Contains(text, "title") || strings.ContainsAny(text, "\x1b\a\r\n\u009b") {
			t.Errorf("the message is %q", text)
		}
	}
}
