package probe

import (
	"net/netip"
	"slices"
)

// cloudflareRanges are the addresses of Cloudflare's edge. (Source:
// https://www.cloudflare.com/ips-v4 and https://www.cloudflare.com/ips-v6, which have not
// changed since 2023. To update the table, replace it by the lines of both pages.) Customers
// can bring addresses of their own, so that an address outside of the table can be the edge's.
var cloudflareRanges = parseRanges(
	"103.21.244.0/22", "103.22.200.0/22", "103.31.4.0/22", "104.16.0.0/13", "104.24.0.0/14",
	"108.162.192.0/18", "131.0.72.0/22", "141.101.64.0/18", "162.158.0.0/15", "172.64.0.0/13",
	"173.245.48.0/20", "188.114.96.0/20", "190.93.240.0/20", "197.234.240.0/22", "198.41.128.0/17",
	"2400:cb00::/32", "2405:8100::/32", "2405:b500::/32", "2606:4700::/32", "2803:f800::/32",
	"2a06:98c0::/29", "2c0f:f248::/32",
)

// tunnelRange contains the address that the public DNS has for every name below
// cfargotunnel.com. It leads nowhere: a visitor gets it if the record of a hostname is not
// proxied. (Source: what resolvers answer; Cloudflare does not document it.)
var tunnelRange = netip.MustParsePrefix("fd10:aec2:5dae::/48")

func parseRanges(texts ...string) []netip.Prefix {
	ranges := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		ranges[i] = netip.MustParsePrefix(text)
	}
	return ranges
}

// IsCloudflare reports whether the address is in Cloudflare's published ranges.
func IsCloudflare(a netip.Addr) bool {
	return slices.ContainsFunc(cloudflareRanges, func(p netip.Prefix) bool { return p.Contains(a) })
}

// IsTunnel reports whether the address is the one of the names of tunnels, which leads
// nowhere.
func IsTunnel(a netip.Addr) bool { return tunnelRange.Contains(a) }
