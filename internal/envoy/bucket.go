package envoy

import (
	"fmt"

	mutationrulesv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

const filterBucket = "envoy.filters.http.lua"

// withoutBuckets disables the filter for a listener with one shard.
var withoutBuckets = map[string]*anypb.Any{filterBucket: pack(&routev3.FilterConfig{Disabled: true})}

// bucketFilter computes the bucket of a request. After an error in the script, a request stays in
// the scope that it has at its start, and gets 404. The filter takes 4 µs for each request.
func bucketFilter(listener string) *hcmv3.HttpFilter {
	return httpFilter(filterBucket, &luav3.Lua{
		DefaultSourceCode: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: bucketScript(listener)}},
	})
}

// bucketScript is [bucketOf] for the host of a request as Envoy compares it with virtual hosts:
// in lower case and without a port, which is what follows the last colon that is not in brackets.
// Envoy removes a dot at the end before, on the open listener, or refuses the host. A changed
// header makes Envoy select the route again.
func bucketScript(listener string) string {
	return fmt.Sprintf(`local band, rshift, byte = bit.band, bit.rshift, string.byte
local keys = {}
for bucket = 0, %[1]d do
  keys[bucket] = %[2]q .. bucket
end
function envoy_on_request(request)
  local headers = request:headers()
  local host = headers:get(":authority") or ""
  local length = #host
  for i = length, 1, -1 do
    local c = byte(host, i)
    if c == 93 then -- ]
      break
    elseif c == 58 then -- :
      length = i - 1
      break
    end
  end
  local hash = 0
  for i = 1, length do
    local c = byte(host, i)
    if c >= 65 and c <= 90 then
      c = c + 32
    end
    hash = band(hash * %[3]d + c, %[4]d)
  end
  headers:replace(%[5]q, keys[rshift(band(hash * %[6]d, %[4]d), %[7]d)])
end
`, buckets-1, bucketKey(listener), hashFactor, 1<<hashBits-1, headerBucket, hashFinisher, hashBits-bucketBits)
}

// startScope puts each request into the scope that it has before the filter has run. The header of
// a visitor is gone before; see [prepareHeaders].
func startScope(listener string) *corev3.TypedExtensionConfig {
	return mutateHeaders("start", &mutationrulesv3.HeaderMutation{Action: &mutationrulesv3.HeaderMutation_Append{Append: &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: headerBucket, Value: bucketKey(listener) + scopeAtStart},
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}}})
}

// scopedRoutes selects the routes by the key in [headerBucket].
func scopedRoutes() *hcmv3.ScopedRoutes {
	return &hcmv3.ScopedRoutes{
		Name: "buckets",
		ScopeKeyBuilder: &hcmv3.ScopedRoutes_ScopeKeyBuilder{Fragments: []*hcmv3.ScopedRoutes_ScopeKeyBuilder_FragmentBuilder{{
			Type: &hcmv3.ScopedRoutes_ScopeKeyBuilder_FragmentBuilder_HeaderValueExtractor_{
				HeaderValueExtractor: &hcmv3.ScopedRoutes_ScopeKeyBuilder_FragmentBuilder_HeaderValueExtractor{
					Name:        headerBucket,
					ExtractType: &hcmv3.ScopedRoutes_ScopeKeyBuilder_FragmentBuilder_HeaderValueExtractor_Index{Index: 0},
				},
			},
		}}},
		RdsConfigSource: adsSource(),
		ConfigSpecifier: &hcmv3.ScopedRoutes_ScopedRds{ScopedRds: &hcmv3.ScopedRds{ScopedRdsConfigSource: adsSource()}},
	}
}
