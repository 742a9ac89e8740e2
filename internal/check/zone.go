package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Zones reads zones with the caller's API token. [cloudflare.DNS] implements it.
type Zones interface {
	provider.DNS
	provider.ZoneSettings
}

// Permissions are the permissions of the caller's API token, all of which are optional.
const Permissions = "Zone: Read, DNS: Read and Zone Settings: Read"

// zoneView is the host's zone, as the caller's API token sees it.
type zoneView struct {
	// api is nil without a token.
	api  Zones
	zone provider.Zone
	// err is why the zone is not known, although there is a token.
	err error
}

// errNoZone means that the token can read no zone that contains the host.
var errNoZone = errors.New("the API token can read no zone that contains the hostname")

// Limits of the requests to the Cloudflare API.
const (
	// maxZoneNames is how many names are tried to find a host's zone.
	maxZoneNames = 8
	// maxAliases is how many CNAME records within the zone are followed.
	maxAliases = 5
	// reservedRequests is how many requests are reserved together: a zone three levels above
	// the host, one page of its records, and two settings.
	reservedRequests = 12
)

// findZone finds the host's zone with the caller's API token. api is nil without a token.
func findZone(ctx context.Context, api Zones, host string) zoneView {
	if api == nil {
		return zoneView{}
	}
	names := ancestors(host)
	if len(names) > maxZoneNames {
		names = names[len(names)-maxZoneNames:]
	}
	for _, name := range names {
		found, err := api.Zones(ctx, name, "")
		if err != nil {
			return zoneView{api: api, err: err}
		}
		// Several accounts can have a zone with the same name. At most one of them is active.
		slices.SortStableFunc(found, func(a, b provider.Zone) int { return rank(a) - rank(b) })
		if len(found) > 0 {
			return zoneView{api: api, zone: found[0]}
		}
	}
	return zoneView{api: api, err: errNoZone}
}

func rank(z provider.Zone) int {
	if z.Status == zoneActive {
		return 0
	}
	return 1
}

// zoneActive is the status of a zone whose records are in effect.
const zoneActive = "active"

// withReservation returns a context for all requests of one check. The budget for API requests
// neither delays nor rejects them after the first one.
func withReservation(ctx context.Context) context.Context {
	return provider.WithReservation(provider.WithPriority(ctx, provider.PriorityDNS), reservedRequests)
}

// ancestors returns the host and its parents with at least two labels, the longest first.
func ancestors(host string) []string {
	var names []string
	for name := host; strings.Contains(name, "."); _, name, _ = strings.Cut(name, ".") {
		names = append(names, name)
	}
	return names
}

// unread returns why the zone could not be read, and what to do. The permission is the one
// that the request needed.
func unread(err error, permission string) (message, advice string) {
	switch {
	case errors.Is(err, provider.ErrUnauthorized):
		return "Cloudflare does not accept your API token.", "Set CLOUDFLARE_API_TOKEN to a valid token."
	case errors.Is(err, provider.ErrForbidden):
		return fmt.Sprintf("your API token lacks the permission %s.", permission),
			fmt.Sprintf("Give the token the permissions %s for the zone.", Permissions)
	case errors.Is(err, errNoZone):
		return err.Error() + ".", "Use a token with the permission Zone: Read for the zone, and check that the zone is at Cloudflare."
	}
	return err.Error() + ".", ""
}
