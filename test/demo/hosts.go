package main

import (
	"net"
	"net/http"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// envoyHostname is the hostname on the Gateway with the data plane Envoy.
const envoyHostname = "shop.example.com"

// hosts replaces DNS: it sends each request to its hostname's tunnel. Every hostname but
// envoyHostname leads to the tunnel for the Gateway platform/shared.
type hosts struct{ edge *simulator.Server }

func (h hosts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	gateway := types.NamespacedName{Namespace: "platform", Name: "shared"}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host == envoyHostname {
		gateway.Name = "envoy"
	}
	id, _ := h.edge.TunnelID(tunnel.RemoteName(clusterID, gateway)) // no tunnel has an empty ID
	h.edge.Tunnel(id).ServeHTTP(w, r)
}
