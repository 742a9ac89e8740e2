package ingress

import "github.com/tunnel-gateway/tunnel-gateway/provider"

func ServedOn(provider.Configuration, string) (bool, bool) { return false, true }
