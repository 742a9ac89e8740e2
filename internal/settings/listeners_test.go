package settings_test

import (
	"fmt"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// entryWithTimeout returns an entry that sets connectTimeout.
func entryWithTimeout(protocolPort, hostname string, seconds int) v1alpha1.ListenerConfiguration {
	return v1alpha1.ListenerConfiguration{
		ProtocolPort: protocolPort, Hostname: hostname,
		OriginRequest: &v1alpha1.OriginRequest{ConnectTimeout: new(v1alpha1.Duration(fmt.Sprintf("%ds", seconds)))},
	}
}

func TestMostSpecificOriginRequestTakesPrecedence(t *testing.T) {
	// Within a level, the hostname takes precedence over the port, and a port over every
	// port. Across levels, the preferred level takes precedence.
	specific := []v1alpha1.ListenerConfiguration{
		entryWithTimeout("HTTPS:443", "a.example.com", 1), entryWithTimeout("*", "a.example.com", 2),
		entryWithTimeout("HTTPS:443", "", 3), entryWithTimeout("*", "", 4),
	}
	for n := range specific {
		entries := specific[n:]
		for name, test := range map[string]struct {
			listeners settings.Listeners
			want      int
		}{
			"one level":                       {settings.Listeners{Class: entries}, n + 1},
			"the class is preferred":          {settings.Listeners{Class: entries, Gateway: []v1alpha1.ListenerConfiguration{entryWithTimeout("HTTPS:443", "a.example.com", 9)}}, n + 1},
			"the Gateway is preferred":        {settings.Listeners{Class: entries, Gateway: []v1alpha1.ListenerConfiguration{entryWithTimeout("*", "", 9)}, PreferGateway: true}, 9},
			"the Gateway has other listeners": {settings.Listeners{Class: entries, Gateway: []v1alpha1.ListenerConfiguration{entryWithTimeout("HTTP:80", "", 9), entryWithTimeout("*", "*.example.com", 9)}, PreferGateway: true}, n + 1},
		} {
			t.Run(fmt.Sprintf("%s, entries from %d", name, n), func(t *testing.T) {
				got := test.listeners.OriginRequests().For("HTTPS:443", "a.example.com")
				if want := fmt.Sprintf("%ds", test.want); got == nil || string(*got.ConnectTimeout) != want {
					t.Errorf("got %+v, want connectTimeout %s", got, want)
				}
			})
		}
	}
}

func TestOriginRequestIsMergedFieldByField(t *testing.T) {
	keepAlive := v1alpha1.ListenerConfiguration{ProtocolPort: "*", OriginRequest: &v1alpha1.OriginRequest{TCPKeepAlive: new(v1alpha1.Duration("7s"))}}
	l := settings.Listeners{Class: []v1alpha1.ListenerConfiguration{entryWithTimeout("HTTP:80", "", 1)}, Gateway: []v1alpha1.ListenerConfiguration{keepAlive}}
	got := l.OriginRequests().For("HTTP:80", "")
	if got == nil || got.ConnectTimeout == nil || *got.ConnectTimeout != "1s" || got.TCPKeepAlive == nil || *got.TCPKeepAlive != "7s" {
		t.Errorf("got %+v, want the fields of both entries", got)
	}
	if got := l.OriginRequests().For("HTTPS:443", ""); got.ConnectTimeout != nil {
		t.Errorf("got %+v for another listener, want only the fields of the entry for every port", got)
	}
}

func TestDifferentAccessOfOneHostnameIsInvalid(t *testing.T) {
	// A tunnel does not distinguish ports, so a hostname has one access block at a level.
	access := func(protocolPort, hostname string, tags ...v1alpha1.AUDTag) v1alpha1.ListenerConfiguration {
		return v1alpha1.ListenerConfiguration{ProtocolPort: protocolPort, Hostname: hostname, Access: &v1alpha1.Access{
			Required: len(tags) > 0, TeamName: new("example"), AUDTags: tags,
		}}
	}
	policies := func(protocolPort, session string, names ...v1alpha1.PolicyName) v1alpha1.ListenerConfiguration {
		return v1alpha1.ListenerConfiguration{ProtocolPort: protocolPort, Access: &v1alpha1.Access{
			Required: true, Policies: names, SessionDuration: new(v1alpha1.SessionDuration(session)), CORS: &v1alpha1.AccessCORS{AllowOrigins: []string{"*"}},
		}}
	}
	for name, test := range map[string]struct {
		entries []v1alpha1.ListenerConfiguration
		message string // part of the message; empty when the entries are valid
	}{
		"the same policies":               {[]v1alpha1.ListenerConfiguration{policies("HTTPS:443", "8h", "a", "b"), policies("*", "8h", "b", "a")}, ""},
		"different policies":              {[]v1alpha1.ListenerConfiguration{policies("HTTPS:443", "8h", "a", "b"), policies("*", "8h", "a")}, "different access blocks"},
		"different sessions":              {[]v1alpha1.ListenerConfiguration{policies("HTTPS:443", "8h", "a"), policies("*", "9h", "a")}, "different access blocks"},
		"policies and tags":               {[]v1alpha1.ListenerConfiguration{policies("HTTPS:443", "8h", "a"), access("*", "", "a")}, "different access blocks"},
		"equal blocks":                    {[]v1alpha1.ListenerConfiguration{access("HTTPS:443", "a.example.com", "a"), access("HTTPS:8443", "a.example.com", "a")}, ""},
		"the same tags in another order":  {[]v1alpha1.ListenerConfiguration{access("HTTPS:443", "", "a", "b"), access("*", "", "b", "a")}, ""},
		"blocks of different hostnames":   {[]v1alpha1.ListenerConfiguration{access("*", "a.example.com", "a"), access("*", "*.example.com", "b"), access("*", "")}, ""},
		"an entry without a block":        {[]v1alpha1.ListenerConfiguration{access("HTTPS:443", "", "a"), {ProtocolPort: "HTTP:80"}}, ""},
		"different tags":                  {[]v1alpha1.ListenerConfiguration{access("HTTPS:443", "a.example.com", "a"), access("HTTPS:8443", "a.example.com", "a", "b")}, "different access blocks for hostname a.example.com, in the entries with protocolPort HTTPS:443 and HTTPS:8443"},
		"required for one port only":      {[]v1alpha1.ListenerConfiguration{access("HTTP:80", ""), access("HTTPS:443", "", "a")}, "different access blocks for the empty hostname (every hostname), in the entries with protocolPort HTTP:80 and HTTPS:443"},
		"a third entry that is different": {[]v1alpha1.ListenerConfiguration{access("HTTP:80", "", "a"), access("HTTPS:443", "", "a"), access("*", "", "b")}, "HTTP:80 and *"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := specOf{ListenerConfigurations: test.entries}
			wantInvalid(t, inputOf(configuration("platform", "defaults", spec), configuration("infra", "own", specOf{})),
				"GatewayClass tunnel is not accepted: TunnelConfiguration platform/defaults of spec.parametersRef is not valid: ", test.message)
			wantInvalid(t, inputOf(configuration("platform", "defaults", specOf{}), configuration("infra", "own", spec)),
				`TunnelConfiguration "own" of spec.infrastructure.parametersRef is not valid: `, test.message)
		})
	}
}
