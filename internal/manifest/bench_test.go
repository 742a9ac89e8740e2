package manifest

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkLoadKinds measures what the first document of every kind costs.
func BenchmarkLoadKinds(b *testing.B) {
	folders := map[crdFolder][]string{
		gatewayCRDs: {"gatewayclasses", "gateways", "listenersets", "httproutes", "grpcroutes", "referencegrants"},
		ownCRDs:     {"tunnelconfigurations"},
	}
	for b.Loop() {
		for folder, plurals := range folders {
			for _, plural := range plurals {
				if _, err := loadCustomKind(folder, plural); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
}

// BenchmarkParse measures a file of 10,000 routes and services.
func BenchmarkParse(b *testing.B) {
	var text strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&text, `---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: app-%[1]d, namespace: team, labels: {app: web}}
spec:
  parentRefs: [{kind: ListenerSet, name: team}]
  hostnames: [app-%[1]d.example.com]
  rules:
  - matches:
    - path: {type: PathPrefix, value: /api}
    - path: {type: Exact, value: /}
    backendRefs: [{name: web-%[1]d, port: 80}]
---
apiVersion: v1
kind: Service
metadata: {name: web-%[1]d, namespace: team}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080}]
`, i)
	}
	data := []byte(text.String())
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := Parse("bench.yaml", data, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
