package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
)

func BenchmarkLoadKinds(b *testing.B) {
	for b.Loop() {
		for _, directory := range crdDirectories {
			for _, k := range kinds.Select(func(k kinds.Kind) bool { return k.Resource().Group == directory.group }) {
				if _, err := loadCustomKind(directory, k.Resource().Resource); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
}

// BenchmarkParse parses a file with 10,000 HTTPRoutes and Services.
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
