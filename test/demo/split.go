package main

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// The objects in the Envoy samples.
const (
	splitNamespace = "shop"
	splitRoute     = "shop"
	stable, canary = "shop.shop", "shop-canary.shop" // the backends
	canaryHeader   = "x-canary"
	canaryWeight   = 0.1
	splitRequests  = 200
	// splitFailure is the probability that a correct data plane's requests are outside
	// the bounds.
	splitFailure = 1e-6
)

// applyEnvoySamples applies the Envoy samples, and waits until Envoy serves them.
func (d *demo) applyEnvoySamples(ctx context.Context) error {
	printStep("applying the samples of the data plane Envoy from %s", d.envoySamples)
	if err := apply(ctx, d.client, d.envoySamples); err != nil {
		return err
	}
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		status, _, err := get(ctx, d.address()+"/", envoyHostname)
		return status == http.StatusOK, err
	})
	if err != nil {
		return fmt.Errorf("wait until Envoy serves %s: %w", envoyHostname, err)
	}
	return nil
}

// checkSplit checks how Envoy splits requests by weight and by header, and that new
// weights need no request to Cloudflare.
func (d *demo) checkSplit(ctx context.Context) error {
	printStep("splitting the requests for %s by weight and by header", envoyHostname)
	low, high := bounds(splitRequests, canaryWeight, splitFailure)
	out := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintf(out, "\nREQUESTS\t%s\t%s\tRESULT\n", strings.ToUpper(stable), strings.ToUpper(canary))
	failed := 0
	check := func(name string, header http.Header, low, high int) error {
		counts, err := d.count(ctx, splitRequests, header)
		if err != nil {
			return err
		}
		result := "ok"
		if got := counts[canary]; got < low || got > high || counts[stable]+got != splitRequests {
			failed++
			result = fmt.Sprintf("FAILED, want %d to %d from %s", low, high, canary)
		}
		fmt.Fprintf(out, "%d %s\t%d\t%d\t%s\n", splitRequests, name, counts[stable], counts[canary], result)
		return nil
	}
	if err := check("without a header, weights 90 and 10", nil, low, high); err != nil {
		return err
	}
	if err := check("with "+canaryHeader+": always", http.Header{canaryHeader: {"always"}}, splitRequests, splitRequests); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("split the requests for %s: a count is out of bounds", envoyHostname)
	}
	return d.checkChange(ctx)
}

// checkChange sends all requests to the canary, and then splits them as before. It measures
// how long the first change takes, and counts the requests to Cloudflare that write.
func (d *demo) checkChange(ctx context.Context) error {
	before := d.cloudflareWrites()
	split, err := d.setWeights(ctx, 0, 100)
	if err != nil {
		return err
	}
	took, err := d.waitForCanary(ctx)
	if err != nil {
		return err
	}
	writes := d.cloudflareWrites() - before
	fmt.Printf("\nAll requests for %s went to %s %s after the HTTPRoute was changed, with %d writes to Cloudflare.\n",
		envoyHostname, canary, took.Round(time.Millisecond), writes)
	if writes > 0 {
		return fmt.Errorf("the change of a route made %d writes to Cloudflare, want none", writes)
	}
	_, err = d.setWeights(ctx, split[0], split[1])
	return err
}

// setWeights changes the weights in the route's last rule, and returns the previous
// weights.
func (d *demo) setWeights(ctx context.Context, weights ...int32) (previous []int32, err error) {
	route := &gatewayv1.HTTPRoute{}
	if err := d.client.Get(ctx, client.ObjectKey{Namespace: splitNamespace, Name: splitRoute}, route); err != nil {
		return nil, err
	}
	patch := client.MergeFrom(route.DeepCopy())
	backends := route.Spec.Rules[len(route.Spec.Rules)-1].BackendRefs
	for i := range backends {
		previous = append(previous, *backends[i].Weight)
		backends[i].Weight = &weights[i]
	}
	return previous, d.client.Patch(ctx, route, patch)
}

// waitForCanary returns the time until only the canary responds.
func (d *demo) waitForCanary(ctx context.Context) (time.Duration, error) {
	const enough = 50
	start, took := time.Now(), time.Duration(0)
	for inARow := 0; inARow < enough; {
		if time.Since(start) > time.Minute {
			return 0, fmt.Errorf("%s still answers a minute after the change of the route", stable)
		}
		counts, err := d.count(ctx, 1, nil)
		if err != nil {
			return 0, err
		}
		if inARow++; inARow == 1 {
			took = time.Since(start)
		}
		if counts[canary] == 0 {
			inARow = 0
		}
	}
	return took, nil
}

// cloudflareWrites counts the requests to Cloudflare that change something.
func (d *demo) cloudflareWrites() int {
	return len(d.edge.Requests()) - d.edge.Count(http.MethodGet, "")
}

// count sends requests one after the other, and counts each backend's responses.
func (d *demo) count(ctx context.Context, requests int, header http.Header) (map[string]int, error) {
	counts := map[string]int{}
	for range requests {
		status, body, err := send(ctx, d.address()+"/", envoyHostname, header)
		if err != nil {
			return nil, err
		}
		backend, _, ok := strings.Cut(body, " answers ")
		if status != http.StatusOK || !ok {
			return nil, fmt.Errorf("%s returned %d %q", envoyHostname, status, body)
		}
		counts[backend]++
	}
	return counts, nil
}

// bounds returns the range that the number of successes in n independent trials leaves
// with at most the given probability.
func bounds(n int, p, failure float64) (low, high int) {
	tail := func(from, step int) int {
		k := from
		for sum := probability(k, n, p); sum <= failure/2; sum += probability(k, n, p) {
			k += step
		}
		return k
	}
	return tail(0, 1), tail(n, -1)
}

// probability returns the probability of k successes in n independent trials.
func probability(k, n int, p float64) float64 {
	lgamma := func(x int) float64 {
		value, _ := math.Lgamma(float64(x + 1))
		return value
	}
	return math.Exp(lgamma(n) - lgamma(k) - lgamma(n-k) + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
}
