package metrics

import (
	"reflect"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

func TestCollectorForgetsDeletedGateways(t *testing.T) {
	m := New(prometheus.NewRegistry())
	for _, name := range []types.NamespacedName{{Namespace: "infra", Name: "one"}, {Namespace: "infra", Name: "two"}} {
		m.SetGateway(name, Gateway{Programmed: true})
		m.SetOldestChange(name, time.Unix(1, 0))
		m.SetGatewayMissing(name, time.Unix(1, 0))
		m.RecordConfigurationChange(name, "team")
		m.SetUnwrittenStatuses(name, 1)
	}
	sizes := func(want int, when string) {
		collector := reflect.ValueOf(m.collector).Elem()
		for i := range collector.NumField() {
			if field := collector.Field(i); field.Kind() == reflect.Map && field.Len() != want {
				t.Errorf("%s has %d Gateways %s, want %d", collector.Type().Field(i).Name, field.Len(), when, want)
			}
		}
	}
	sizes(2, "before the deletion")
	for _, name := range []types.NamespacedName{{Namespace: "infra", Name: "one"}, {Namespace: "infra", Name: "two"}} {
		m.DeleteGateway(name)
		m.SetUnwrittenStatuses(name, 0)
	}
	sizes(0, "after the deletion")
}
