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

// leaderMetric is a metric that controller-runtime exports: 1 in the replica that
// leads, otherwise 0.
var leaderMetric = metrics.Metric{Name: "leader_election_master_status", Type: metrics.Gauge, Labels: []metrics.Label{{Name: "name"}}}

// lease is the default name for a release's Lease.
const lease = "tunnel-gateway.tunnelgateway.dev"

// replica is a controller pod and the Lease that it tries to acquire.
type replica struct{ namespace, pod, lease string }

// target returns the labels that Prometheus adds to the pod's metrics.
func (r replica) target() map[string]string {
	return map[string]string{"namespace": r.namespace, "pod": r.pod, "job": "tunnel-gateway"}
}

// releasePods are those pods in the release whose metrics Prometheus scrapes.
var releasePods = [2]replica{{"system", "tunnel-gateway-0", lease}, {"system", "tunnel-gateway-1", lease}}

// addLeaderStatus stores the leader metric for all replicas.
func (s *prometheusServer) addLeaderStatus(appender storage.Appender) {
	s.t.Helper()
	for r, leads := range s.replicas {
		series := labels.FromStrings(model.MetricNameLabel, leaderMetric.Name, "name", r.lease,
			"namespace", r.namespace, "pod", r.pod, "job", "tunnel-gateway")
		if _, err := appender.Append(0, series, s.now.UnixMilli(), leads); err != nil {
			s.t.Fatal(err)
		}
	}
}

// leaderChanges are events after which the release's first replica may no longer lead,
// and the labels on the resulting alerts.
var leaderChanges = map[string]struct {
	apply func(*prometheusServer)
	want  []labels.Labels
}{
	"no change":               {apply: func(*prometheusServer) {}},
	"the other replica leads": {apply: func(s *prometheusServer) { s.replicas[releasePods[0]], s.replicas[releasePods[1]] = 0, 1 }},
	"one replica is deleted":  {apply: func(s *prometheusServer) { delete(s.replicas, releasePods[1]) }},
	"no replica leads": {
		apply: func(s *prometheusServer) { s.replicas[releasePods[0]] = 0 },
		want:  []labels.Labels{labels.FromStrings("name", lease, "namespace", "system")},
	},
	"both replicas are deleted": {
		apply: func(s *prometheusServer) { delete(s.replicas, releasePods[0]); delete(s.replicas, releasePods[1]) },
		want:  []labels.Labels{labels.FromStrings("name", lease, "namespace", "system")},
	},
	"the replica of a second release is deleted": {
		apply: func(s *prometheusServer) { delete(s.replicas, replica{"edge", "edge-0", "edge.tunnelgateway.dev"}) },
		want:  []labels.Labels{labels.FromStrings("name", "edge.tunnelgateway.dev", "namespace", "edge")},
	},
	"a same-named release's replica in another namespace is deleted": {
		apply: func(s *prometheusServer) { delete(s.replicas, replica{"west", "tunnel-gateway-0", lease}) },
		want:  []labels.Labels{labels.FromStrings("name", lease, "namespace", "west")},
	},
	"the replica of another controller is deleted": {
		apply: func(s *prometheusServer) { delete(s.replicas, replica{"other", "other-0", "other.example.com"}) },
	},
}

// TestDownAlertFiresForEachReleaseWithoutALeader checks that the labels name the release.
func TestDownAlertFiresForEachReleaseWithoutALeader(t *testing.T) {
	rule := alerts(t)["TunnelGatewayDown"]
	for name, change := range leaderChanges {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.replicas[replica{"edge", "edge-0", "edge.tunnelgateway.dev"}] = 1
			s.replicas[replica{"west", "tunnel-gateway-0", lease}] = 1
			s.replicas[replica{"other", "other-0", "other.example.com"}] = 1
			s.advance(10, func() {})
			s.advance(20, func() { change.apply(s) })
			var got []labels.Labels
			if s.fires(rule) {
				for _, sample := range s.query(rule.Expr) {
					got = append(got, sample.Metric)
				}
			}
			if !slices.EqualFunc(got, change.want, labels.Equal) {
				t.Errorf("the alert fires for %v, want %v", got, change.want)
			}
		})
	}
}

// TestDownAlertFiresWhenNoControllerEverLed checks that the alert fires as long as no
// replica leads. Other controllers' leaders do not count.
func TestDownAlertFiresWhenNoControllerEverLed(t *testing.T) {
	rule := alerts(t)["TunnelGatewayDown"]
	s := newServer(t)
	clear(s.replicas)
	s.replicas[replica{"other", "other-0", "other.example.com"}] = 1
	s.advance(10, func() {})
	if !s.fires(rule) || len(s.query(rule.Expr)) != 1 {
		t.Errorf("the alert does not fire: %v", s.query(rule.Expr))
	}
	s.replicas[releasePods[0]] = 1
	s.advance(1, func() {})
	if s.fires(rule) {
		t.Error("the alert fires although a replica leads")
	}
	clear(s.replicas)
	s.now = s.now.Add(48 * time.Hour)
	s.advance(10, func() {})
	if !s.fires(rule) {
		t.Error("the alert does not fire after two days")
	}
}

// TestReplicasExportWhetherTheyLead checks the leader metric in a leader election.
func TestReplicasExportWhetherTheyLead(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var led float64
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: lease, Lock: &memoryLock{}, LeaseDuration: time.Minute, RenewDeadline: 30 * time.Second, RetryPeriod: time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { led = exportedLeaderStatus(t); cancel() },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := exportedLeaderStatus(t); got != 0 {
		t.Errorf("a replica that does not lead exports %v, want 0", got)
	}
	elector.Run(ctx)
	<-ctx.Done()
	if led != 1 {
		t.Errorf("the leader exports %v, want 1", led)
	}
}

// exportedLeaderStatus returns the leader metric's exported value.
func exportedLeaderStatus(t *testing.T) float64 {
	families, err := ctrlmetrics.Registry.Gather()
	if err != nil {
		t.Error(err)
	}
	for _, family := range families {
		if family.GetName() != leaderMetric.Name {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == leaderMetric.Labels[0].Name && label.GetValue() == lease {
					return metric.GetGauge().GetValue()
				}
			}
		}
	}
	t.Errorf("%s of %s is not exported", leaderMetric.Name, lease)
	return -1
}

// memoryLock is a Lease in memory, for a single replica.
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
