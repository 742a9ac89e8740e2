package xds

// Envoy does not use a cluster before it has the secrets that the cluster names. Only the
// content of a secret changes and not its name: the clusters stay, and Envoy uses the new
// content for new connections. The server never removes a secret, because a cluster that
// is about to be removed can still name it.

// lacksSecrets reports whether the client has not acknowledged some secret in the target.
// Some cluster in the target names each of them, so the client subscribes to it.
func (s *session) lacksSecrets() bool {
	for _, r := range s.target.byKind[secrets].each() {
		if !s.types[secrets].has(r) {
			return true
		}
	}
	return false
}
