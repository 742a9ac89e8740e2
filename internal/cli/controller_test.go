package cli

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/controller"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

func TestCertificatesAreCheckedInTheConfiguredNamespaces(t *testing.T) {
	for name, test := range map[string]struct {
		flags  config.Kubernetes
		served []string
		all    bool
		want   []string
	}{
		"default":                       {config.Kubernetes{ValidateCertificates: true}, nil, true, nil},
		"disabled":                      {config.Kubernetes{}, nil, false, nil},
		"disabled with --namespaces":    {config.Kubernetes{Namespaces: []string{"a", "b"}}, []string{"a", "b"}, false, nil},
		"served namespaces":             {config.Kubernetes{ValidateCertificates: true, Namespaces: []string{"a", "b"}}, []string{"a"}, false, []string{"a"}},
		"some of all namespaces":        {config.Kubernetes{ValidateCertificates: true, CertificateNamespaces: []string{"a"}}, nil, false, []string{"a"}},
		"some of the served namespaces": {config.Kubernetes{ValidateCertificates: true, Namespaces: []string{"a", "b", "c"}, CertificateNamespaces: []string{"a", "b"}}, []string{"a", "c"}, false, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := readsAllSecrets(test.flags); got != test.all {
				t.Errorf("readsAllSecrets = %v, want %v", got, test.all)
			}
			if test.all {
				return
			}
			if diff := cmp.Diff(test.want, secretNamespaces(test.flags, test.served)); diff != "" {
				t.Errorf("secretNamespaces differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAccountsWithOneTokenShareTheRateLimit(t *testing.T) {
	var requests atomic.Int64
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer api.Close()
	c := &config.Config{Cloudflare: config.Cloudflare{BaseURL: api.URL}}
	o := controllerOptions(c, "cluster", metrics.New(prometheus.NewRegistry()), noop.NewTracerProvider().Tracer(""))
	// The first account is opened again, as after its Secret changes.
	for _, account := range []string{"first", "second", "first"} {
		p, err := o.Open(account, "token")
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Tunnels(t.Context())
		if _, limited := provider.RetryAfter(err); !limited {
			t.Errorf("account %s: got %v, want a rate limit", account, err)
		}
	}
	if got := requests.Load(); got != 1 {
		t.Errorf("%d requests with a token that is above its rate limit, want 1", got)
	}
}

// stoppingManager stops after the context for controller.Setup has ended, like the xDS server, which
// waits for a goroutine that Setup has started.
type stoppingManager struct {
	manager.Manager
	setup context.Context
}

func (stoppingManager) GetCache() cache.Cache { return nil }

func (m stoppingManager) Start(ctx context.Context) error {
	<-ctx.Done()
	<-m.setup.Done()
	return nil
}

// changed requires a restart immediately.
type changed struct{}

func (changed) Watch(context.Context, client.Reader, func() bool) error {
	return errors.New("a change")
}

func TestRestartEndsWhatSetupHasStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // fails if everything waits for ever
		setup, stop := context.WithCancelCause(t.Context())
		m := stoppingManager{setup: setup}
		if err := runUntilChange(setup, stop, m, &controller.Readiness{}, logr.Discard(), changed{}); err != nil {
			t.Error(err)
		}
	})
}
