package gateway

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// maxSecretsPerNamespace is how many Secrets the controller reads for one namespace's
// listeners on one Gateway.
const maxSecretsPerNamespace = 128

// SecretsToRead returns the Secrets that the snapshot's listeners refer to and are
// permitted to refer to, up to a limit for each namespace. The controller must not read
// other Secrets, so that a status never reveals whether they exist.
func SecretsToRead(s *Snapshot) []types.NamespacedName {
	read, _ := limitSecrets(s, newGrants(s.Grants))
	return read
}

// limitSecrets returns the Secrets to read in order of precedence, and the permitted
// Secrets that are above the limit.
func limitSecrets(s *Snapshot, permitted grants) (read []types.NamespacedName, above map[types.NamespacedName]bool) {
	seen, used := map[types.NamespacedName]bool{}, map[string]int{}
	add := func(from referrer, referred []types.NamespacedName) {
		for _, name := range referred {
			if seen[name] || !permitted.permits(from, secretTarget(name)) {
				continue
			}
			if used[from.namespace] == maxSecretsPerNamespace {
				if above == nil {
					above = map[types.NamespacedName]bool{}
				}
				above[name] = true
				continue
			}
			used[from.namespace]++
			seen[name] = true
			read = append(read, name)
			delete(above, name)
		}
	}
	add(referrer{KindGateway, s.Gateway.Namespace}, SecretsOfGateway(s.Gateway))
	for _, set := range slices.SortedFunc(slices.Values(AllowedListenerSets(s)), compareSets) {
		add(referrer{KindListenerSet, set.Namespace}, SecretsOfListenerSet(set))
	}
	return read, above
}

func countCertificateRefs(s *Snapshot) int {
	count := len(SecretsOfGateway(s.Gateway))
	for _, set := range AllowedListenerSets(s) {
		for i := range set.Spec.Listeners {
			if tls := set.Spec.Listeners[i].TLS; tls != nil {
				count += len(tls.CertificateRefs)
			}
		}
	}
	return count
}
