package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// result has one bed's measurements. Each series has a value for each repetition, or for
// each change.
type result struct {
	bedOptions
	requests                         series // per second
	connectorCPU, envoyCPU, otherCPU series // microseconds per request
	// toRules and toEnvoy are the ratios of the requests per second to those of the references
	// with ingress rules and with Envoy.
	toRules, toEnvoy series
	median           series // milliseconds, like the following ones
	p99              series // without changes
	meanwhile        series // p99 of other requests during changes
	backend          changeSeries
	hostname         changeSeries
	before, after    memory
	start            float64 // seconds
}

// changeSeries are milliseconds for each change.
type changeSeries struct {
	served series
	cpu    series // of the controller
}

func (s *changeSeries) add(c changeTimes) {
	s.served, s.cpu = append(s.served, milliseconds(c.Served...)...), append(s.cpu, milliseconds(c.CPU...)...)
}

// comparison measures beds one after the other. The references, which have the first number of
// hostnames for each data plane, run the whole time: their requests are measured
// in turn with those of each other bed, so that the ratios hold when the machine's speed varies.
type comparison struct {
	options
	references []*bedProcess
	results    []result
	cost       []result // only with the CPU time of changes
}

// measureAll runs all measurements, and prints the results even after an error.
func measureAll(ctx context.Context, o options) error {
	c := &comparison{options: o}
	begin := time.Now()
	err := errors.Join(c.measurePlanes(ctx), c.stopReferences())
	if err == nil {
		err = c.measureCosts(ctx)
	}
	progress("measured in %s", time.Since(begin).Round(time.Second))
	printResults(os.Stdout, c)
	return err
}

func progress(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, "==> "+format+"\n", arguments...)
}

// bedOptions returns the options for a bed with the number of hostnames.
func (c *comparison) bedOptions(plane v1alpha1.DataPlane, hostnames int) bedOptions {
	o := bedOptions{
		DataPlane: plane, Hostnames: hostnames, PerRoute: 2, Programs: c.programs, Envoy: c.binaryEnvoy, Cloudflared: c.cloudflared,
	}
	if hostnames > 20_000 {
		o.PerRoute = 10
	}
	return o
}

// measurePlanes measures the beds with each number of hostnames.
func (c *comparison) measurePlanes(ctx context.Context) error {
	var others []bedOptions
	for _, plane := range []struct {
		name  v1alpha1.DataPlane
		sizes sizes
	}{{v1alpha1.DataPlaneIngressRules, c.rules}, {v1alpha1.DataPlaneEnvoy, c.envoy}} {
		for i, size := range plane.sizes {
			o := c.bedOptions(plane.name, size)
			if i > 0 {
				others = append(others, o)
				continue
			}
			reference, err := c.startBed(ctx, o)
			if err != nil {
				return err
			}
			c.references = append(c.references, reference)
		}
	}
	for _, reference := range c.references {
		if err := c.measure(ctx, reference); err != nil {
			return err
		}
	}
	for _, o := range others {
		p, err := c.startBed(ctx, o)
		if err == nil {
			err = errors.Join(c.measure(ctx, p), p.stop())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *comparison) startBed(ctx context.Context, o bedOptions) (*bedProcess, error) {
	progress("starting %s with %d hostnames and %d routes", o.DataPlane, o.Hostnames, o.routes())
	begin := time.Now()
	p, err := startBedProcess(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("%s with %d hostnames: %w", o.DataPlane, o.Hostnames, err)
	}
	progress("started in %s", time.Since(begin).Round(time.Second))
	return p, nil
}

func (c *comparison) stopReferences() error {
	var errs []error
	for _, reference := range c.references {
		errs = append(errs, reference.stop())
	}
	c.references = nil
	return errors.Join(errs...)
}

// measure measures one bed, and appends its result.
func (c *comparison) measure(ctx context.Context, p *bedProcess) error {
	progress("measuring %s with %d hostnames", p.options.DataPlane, p.options.Hostnames)
	r := result{bedOptions: p.options}
	for _, step := range []func(context.Context, *bedProcess, *result) error{
		c.measureMemory, c.measureRequests, c.measureChanges, c.measureRestart,
	} {
		if err := step(ctx, p, &r); err != nil {
			return fmt.Errorf("%s with %d hostnames: %w", p.options.DataPlane, p.options.Hostnames, err)
		}
	}
	c.results = append(c.results, r)
	return nil
}

// measureMemory measures the memory before and after requests to every Service.
func (c *comparison) measureMemory(ctx context.Context, p *bedProcess, r *result) error {
	return errors.Join(
		p.measure(ctx, request{Measure: measureMemory}, &r.before),
		p.measure(ctx, request{Measure: measureVisits}, nil),
		p.measure(ctx, request{Measure: measureMemory}, &r.after),
	)
}

// measureRequests measures the requests of the bed and of the references in turn.
func (c *comparison) measureRequests(ctx context.Context, p *bedProcess, r *result) error {
	beds := slices.Clone(c.references)
	if !slices.Contains(beds, p) {
		beds = append(beds, p)
	}
	perSecond := map[v1alpha1.DataPlane]series{} // of the references
	for round := range c.rounds {
		for i := range beds {
			bed := beds[(i+round)%len(beds)]
			var t traffic
			l := load{Connections: c.connections, Hostnames: bed.options.Hostnames, Popular: popular}
			if err := bed.measure(ctx, request{Measure: measureRequests, Load: l, Duration: c.duration}, &t); err != nil {
				return err
			}
			if slices.Contains(c.references, bed) {
				perSecond[bed.options.DataPlane] = append(perSecond[bed.options.DataPlane], t.PerSecond)
			}
			if bed == p {
				r.requests = append(r.requests, t.PerSecond)
				r.connectorCPU, r.envoyCPU = append(r.connectorCPU, t.ConnectorCPU), append(r.envoyCPU, t.EnvoyCPU)
				r.otherCPU = append(r.otherCPU, t.OtherCPU)
			}
		}
	}
	r.toRules = r.requests.over(perSecond[v1alpha1.DataPlaneIngressRules])
	r.toEnvoy = r.requests.over(perSecond[v1alpha1.DataPlaneEnvoy])
	return nil
}

// popular is the number of hostnames that share the requests when they are counted. With more, each
// backend gets so few of them that Envoy closes its connection before the next one, and connections
// are measured instead of the table.
const popular = 200

// measureChanges measures latencies without and with changes, in turn.
func (c *comparison) measureChanges(ctx context.Context, p *bedProcess, r *result) error {
	l := load{Connections: c.connections, Hostnames: p.options.Hostnames, Rate: c.rate}
	for range c.rounds {
		var t traffic
		if err := p.measure(ctx, request{Measure: measureRequests, Load: l, Duration: c.duration}, &t); err != nil {
			return err
		}
		r.median, r.p99 = append(r.median, milliseconds(t.Median)...), append(r.p99, milliseconds(t.P99)...)
		var changed changes
		if err := p.measure(ctx, request{Measure: measureChanges, Load: l, Changes: c.changes, Profile: c.profile}, &changed); err != nil {
			return err
		}
		r.add(changed)
		r.meanwhile = append(r.meanwhile, milliseconds(changed.P99)...)
	}
	// The memory includes what changes leave behind.
	return p.measure(ctx, request{Measure: measureMemory}, &r.after)
}

func (r *result) add(c changes) {
	r.backend.add(c.Backend)
	r.hostname.add(c.Hostname)
}

func (c *comparison) measureRestart(ctx context.Context, p *bedProcess, r *result) error {
	var took time.Duration
	err := p.measure(ctx, request{Measure: measureRestart}, &took)
	r.start = took.Seconds()
	return err
}

// measureCosts measures the CPU time of one change. The controller's time does not depend on the
// connector, and the real one needs many GiB for 10,000 ingress rules, so the stand-in takes its place.
func (c *comparison) measureCosts(ctx context.Context) error {
	for _, plane := range []v1alpha1.DataPlane{v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneEnvoy} {
		for _, routes := range c.routes {
			o := c.bedOptions(plane, routes)
			o.PerRoute, o.Cloudflared = 1, ""
			p, err := c.startBed(ctx, o)
			if err != nil {
				return err
			}
			r := result{bedOptions: o}
			var changed changes
			err = p.measure(ctx, request{Measure: measureChanges, Changes: c.rounds * c.changes, Profile: c.profile}, &changed)
			if err := errors.Join(err, p.stop()); err != nil {
				return err
			}
			r.add(changed)
			c.cost = append(c.cost, r)
		}
	}
	return nil
}
