package xds

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// A client without scopes requests the routes by the name of the listener: an Envoy whose
// bootstrap comes from an earlier version, or a listener that was replaced and whose
// connections have not ended. If the routes are spread over several RouteConfigurations, such
// a client gets a RouteConfiguration with the virtual hosts of all of them.

// wholeRoutes are a snapshot's RouteConfigurations by listener. They are made when a client
// wants them.
type wholeRoutes struct {
	mu  sync.Mutex
	all resources
}

// get returns the routes for a listener if a client has wanted them.
func (w *wholeRoutes) get(listener string) *resource {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all[listener]
}

// wholeOf returns the routes for a listener that the snapshot has only in parts, or nil.
func (s *snapshot) wholeOf(name string) *resource {
	if name != envoy.ListenerOpen && name != envoy.ListenerProtected || s.whole == nil || !s.isComplete() || s.byKind[routes].has(name) {
		return nil
	}
	s.whole.mu.Lock()
	defer s.whole.mu.Unlock()
	if s.whole.all == nil {
		s.whole.all = resources{}
	}
	if s.whole.all[name] == nil {
		s.whole.all[name] = s.mergeRoutes(name)
	}
	return s.whole.all[name]
}

// mergeRoutes returns a RouteConfiguration with the virtual hosts of all RouteConfigurations
// for a listener, each once, and with the other fields of the first of them.
func (s *snapshot) mergeRoutes(listener string) *resource {
	encoded := protowire.AppendString(protowire.AppendTag(nil, fieldRoutesName, protowire.BytesType), listener)
	seen := map[string]struct{}{}
	isFirst, typeURL := true, ""
	for _, name := range slices.Sorted(maps.Keys(s.byKind[routes].all)) {
		if envoy.ListenerOf(name) != listener {
			continue
		}
		body := s.byKind[routes].get(name).Resource
		for field := range fieldsOf(body.Value) {
			_, isKnown := seen[string(field.content)]
			switch {
			case field.number == fieldVirtualHosts && !isKnown:
				seen[string(field.content)] = struct{}{}
				encoded = append(encoded, field.encoded...)
			case field.number != fieldVirtualHosts && field.number != fieldRoutesName && isFirst:
				encoded = append(encoded, field.encoded...)
			default: // in an earlier RouteConfiguration
			}
		}
		isFirst, typeURL = false, body.TypeUrl
	}
	sum := sha256.Sum256(encoded)
	return &resource{Name: listener, Version: hex.EncodeToString(sum[:]), Resource: &anypb.Any{TypeUrl: typeURL, Value: encoded}}
}
