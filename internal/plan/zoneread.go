package plan

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/secrets"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// recordOptions returns the options with which the controller recognizes its records, or
// why they are not known.
func (p *Plan) recordOptions(ctx context.Context, objects client.Reader, secretName string) (o dns.Options, problem string) {
	identity, problem := p.identity(ctx, objects, secretName, "records")
	if o = dns.Options(identity); o.ClusterUID == "" {
		problem = "DNS was not read, because " + problem
	}
	return o, problem
}

// identity returns with what the controller recognizes what it has made at Cloudflare, which
// noun names, or why it is not known. Without the right key, everything would look as if
// another client had made it.
func (p *Plan) identity(ctx context.Context, objects client.Reader, secretName, noun string) (o ownership.Identity, problem string) {
	o = ownership.Identity{ClusterID: p.tunnels.options.ClusterID, ClusterUID: p.tunnels.options.ClusterUID}
	if o.ClusterUID == "" {
		return o, fmt.Sprintf("only a cluster shows which %s belong to the controller. Add --context to compare with a cluster's %s.", noun, noun)
	}
	var secret corev1.Secret
	name := types.NamespacedName{Namespace: p.tunnels.namespace, Name: secretName}
	switch err := objects.Get(ctx, name, &secret); {
	case apierrors.IsNotFound(err): // the controller creates a key, so that nothing is recognized
		o.Key = []byte(rand.Text())
	case apierrors.IsForbidden(err):
		return o, fmt.Sprintf("no permission to get Secret %s, with which the controller recognizes its %s", name, noun)
	case err != nil:
		return o, fmt.Sprintf("read Secret %s: %v", name, err)
	default:
		if o.Key, err = secrets.SigningKey(&secret); err != nil {
			return o, fmt.Sprintf("Secret %s has no valid key, with which the controller recognizes its %s: %v", name, noun, err)
		}
	}
	return o, ""
}

// reservedReads is how many requests reading a zone takes, unless it has thousands of
// records: the zone, its records, its certificates and its quota.
const reservedReads = 4

// readZone executes the steps that read the zone, and returns the facts with the Memory
// after them. It ends before the first step that would wait or change anything. It waits
// for the request budget, which spaces the reads of several zones.
func readZone(ctx context.Context, api provider.DNS, f dns.Facts) (dns.Facts, error) {
	ctx = provider.WithReservation(provider.WithPriority(ctx, provider.PriorityDNS), reservedReads)
	for range maxSteps {
		f.Memory = dns.Observe(f)
		step := dns.Decide(f)
		if step.Ends() || step.Action == dns.Apply || step.Action == dns.ConcludeAdoptions {
			return f, nil
		}
		r := readStep(ctx, api, f.Zone, step)
		if limit, ok := errors.AsType[*provider.RateLimitedError](r.Err); ok && limit.Budget {
			if err := pause(ctx, limit.RetryAfter); err != nil {
				return f, err
			}
			continue
		}
		f.Memory = dns.Conclude(f.Memory, step, r)
		if r.Err != nil && (step.Action == dns.ReadZone || step.Action == dns.ReadRecords) {
			return f, r.Err
		}
	}
	return f, fmt.Errorf("reading the zone did not end within %d steps", maxSteps)
}

// readStep executes a step that reads.
func readStep(ctx context.Context, api provider.DNS, zone string, step dns.Step) dns.Result {
	r := dns.Result{Sent: uptime, Uptime: uptime}
	switch step.Action {
	case dns.ReadZone:
		r.Zones, r.Err = api.Zones(ctx, zone, step.ID)
	case dns.ReadUsage:
		r.Usage, r.Err = api.Usage(ctx, step.ID)
	case dns.ReadCertificates:
		r.Hosts, r.Err = api.CertificateHosts(ctx, step.ID)
	case dns.ReadRecords:
		r.Records, r.Err = api.Records(ctx, step.ID, step.Names...)
	case dns.None, dns.Wait, dns.Apply, dns.ConcludeAdoptions:
		r.Err = fmt.Errorf("unexpected step %s", step.Action)
	}
	return r
}

// pause waits for the duration, or returns the context's error.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// describeZoneError names the permissions that the API token lacks.
func describeZoneError(err error) string {
	if errors.Is(err, provider.ErrForbidden) || errors.Is(err, provider.ErrUnauthorized) {
		return err.Error() + "; the API token requires the permissions Zone: Read and DNS: Read for the zone"
	}
	return err.Error()
}
