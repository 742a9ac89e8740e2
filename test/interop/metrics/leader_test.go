package metrics

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
)

// leadership is what controller-runtime exports of every replica: 1 for the one
// that leads.
var leadership = metrics.Metric{Name: "leader_election_master_status", Type: metrics.Gauge, Labels: []metrics.Label{{Name: "name"}}}

// lease is that of a release, by default.
const lease = "tunnel-gateway.tunnelgateway.dev"

// replica is a pod, with the Lease that it asks for.
type replica struct{ namespace, pod, lease string }

// ours are those of the release that is scraped.
var ours = [2]replica{{"system", "tunnel-gateway-0", lease}, {"system", "tunnel-gateway-1", lease}}

// addLeadership stores what the replicas export.
func (s *prometheusServer) addLeadership(appender storage.Appender) {
	s.t.Helper()
	for r, leads := range s.replicas {
		series := labels.FromStrings(model.MetricNameLabel, leadership.Name, "name", r.lease,
			"namespace", r.namespace, "pod", r.pod, "job", "tunnel-gateway")
		if _, err := appender.Append(0, series, s.now.UnixMilli(), leads); err != nil {
			s.t.Fatal(err)
		}
	}
}

// elections are what happens to two replicas, before which the first of them has
// led for a while, and what it is told by.
var elections = map[string]struct {
	happens func(*prometheusServer)
	want    []labels.Labels
}{
	"nothing":         {happens: func(*prometheusServer) {}},
	"the other leads": {happens: func(s *prometheusServer) { s.replicas[ours[0]], s.replicas[ours[1]] = 0, 1 }},
	"one is left":     {happens: func(s *prometheusServer) { delete(s.replicas, ours[1]) }},
	"neither leads": {
		happens: func(s *prometheusServer) { s.replicas[ours[0]] = 0 },
		want:    []labels.Labels{labels.FromStrings("name", lease, "namespace", "system")},
	},
	"both are gone": {
		happens: func(s *prometheusServer) { delete(s.replicas, ours[0]); delete(s.replicas, ours[1]) },
		want:    []labels.Labels{labels.FromStrings("name", lease, "namespace", "system")},
	},
	"those of a second release are gone": {
		happens: func(s *prometheusServer) { delete(s.replicas, replica{"edge", "edge-0", "edge.tunnelgateway.dev"}) },
		want:    []labels.Labels{labels.FromStrings("name", "edge.tunnelgateway.dev", "namespace", "edge")},
	},
	"that of the same name elsewhere is gone": {
		happens: func(s *prometheusServer) { delete(s.replicas, replica{"west", "tunnel-gateway-0", lease}) },
		want:    []labels.Labels{labels.FromStrings("name", lease, "namespace", "west")},
	},
	"a controller of somebody else is gone": {
		happens: func(s *prometheusServer) { delete(s.replicas, replica{"theirs", "theirs-0", "theirs.example.com"}) },
	},
}

// TestDown: every release that had a leader is missed by its name, once.
func TestDown(t *testing.T) {
	rule := alerts(t)["TunnelGatewayDown"]
	for name, election := range elections {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.replicas[replica{"edge", "edge-0", "edge.tunnelgateway.dev"}] = 1
			s.replicas[replica{"west", "tunnel-gateway-0", lease}] = 1
			s.replicas[replica{"theirs", "theirs-0", "theirs.example.com"}] = 1
			s.minutes(10, func() {})
			s.minutes(20, func() { election.happens(s) })
			var got []labels.Labels
			if s.fires(rule) {
				for _, sample := range s.query(rule.Expr) {
					got = append(got, sample.Metric)
				}
			}
			if !slices.EqualFunc(got, election.want, labels.Equal) {
				t.Errorf("it fires for %v, want %v", got, election.want)
			}
		})
	}
}

// A controller that never led is missed as well, and however long it is away;
// others that lead in its place are none of it.
func TestNeverUp(t *testing.T) {
	rule := alerts(t)["TunnelGatewayDown"]
	s := newServer(t)
	clear(s.replicas)
	s.replicas[replica{"theirs", "theirs-0", "theirs.example.com"}] = 1
	s.minutes(10, func() {})
	if !s.fires(rule) || len(s.query(rule.Expr)) != 1 {
		t.Errorf("it does not fire: %v", s.query(rule.Expr))
	}
	s.replicas[ours[0]] = 1
	s.minutes(1, func() {})
	if s.fires(rule) {
		t.Error("it fires for one that leads")
	}
	clear(s.replicas)
	s.now = s.now.Add(48 * time.Hour)
	s.minutes(10, func() {})
	if !s.fires(rule) {
		t.Error("it has ended by itself")
	}
}

// TestLeadershipIsExported holds leadership against an election.
func TestLeadershipIsExported(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var led float64
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: lease, Lock: &memoryLock{}, LeaseDuration: time.Minute, RenewDeadline: 30 * time.Second, RetryPeriod: time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { led = exportedLeadership(t); end() },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := exportedLeadership(t); got != 0 {
		t.Errorf("a replica that waits exports %v", got)
	}
	elector.Run(ctx)
	<-ctx.Done()
	if led != 1 {
		t.Errorf("the one that leads exports %v", led)
	}
}

func exportedLeadership(t *testing.T) float64 {
	families, err := ctrlmetrics.Registry.Gather()
	if err != nil {
		t.Error(err)
	}
	for _, family := range families {
		if family.GetName() != leadership.Name {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == leadership.Labels[0].Name && label.GetValue() == lease {
					return metric.GetGauge().GetValue()
				}
			}
		}
	}
	t.Errorf("%s of %s is not exported", leadership.Name, lease)
	return -1
}

// memoryLock is a Lease that nobody else wants.
type memoryLock struct {
	record *resourcelock.LeaderElectionRecord
}

func (l *memoryLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if l.record == nil {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, lease)
	}
	return l.record, nil, nil
}

func (l *memoryLock) Create(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.record = &record
	return nil
}

func (l *memoryLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Create(ctx, record)
}

func (*memoryLock) RecordEvent(string) {}

func (*memoryLock) Identity() string { return "tunnel-gateway-0" }

func (*memoryLock) Describe() string { return lease }
