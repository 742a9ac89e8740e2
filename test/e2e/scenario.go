package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// scenario runs the steps once.
type scenario struct {
	*bed
	cloud  *cloud
	events time.Duration
	upload int64 // in bytes
	steps  []step
	hooks  hooks

	step   string // the running step
	seen   observations
	tunnel provider.Tunnel
}

// step is one step in the scenario.
type step struct {
	name string
	// needs is a step without which this step cannot succeed, or empty.
	needs string
	// run returns what the table says about the step.
	run func(*scenario, context.Context) (detail string, err error)
}

// steps are the steps in their order.
var steps = []step{
	{"tunnel", "", (*scenario).createTunnel},
	{"record", "tunnel", (*scenario).awaitRecords},
	{"https", "record", (*scenario).requestHTTPS},
	{"schemes", "record", (*scenario).requestSchemes},
	{"grpc", "record", (*scenario).callGRPC},
	{"websocket", "record", (*scenario).useWebSocket},
	{"events", "record", (*scenario).receiveEvents},
	{"upload", "record", (*scenario).uploadFile},
	{"route", "https", (*scenario).changeRoute},
	{"rollout", "https", (*scenario).rollOutBackend},
	{"connectors", "https", (*scenario).rollOutConnectors},
	{"access", "", (*scenario).skipAccess},
	{"removal", "tunnel", (*scenario).removeGateway},
}

// A step's results.
const (
	resultOK      = "ok"
	resultFailed  = "FAILED"
	resultSkipped = "skipped"
)

// result is what happened in a step.
type result struct {
	step, result, detail string
	took                 time.Duration
}

// skippedError is the reason why a step does not apply.
type skippedError string

func (e skippedError) Error() string { return string(e) }

// run runs the steps. A step that fails does not end the scenario; only the steps that need
// it are skipped.
func (s *scenario) run(ctx context.Context) []result {
	s.seen = observations{}
	results := make([]result, 0, len(s.steps))
	succeeded := map[string]bool{"": true}
	var ended error
	for _, step := range s.steps {
		r := result{step: step.name, result: resultSkipped}
		switch {
		case ended != nil:
			r.detail = ended.Error()
		case !succeeded[step.needs]:
			r.detail = "the step " + step.needs + " has failed"
		default:
			r = s.runStep(ctx, step)
			if ended = s.end(ctx, step.name); ended != nil && r.result == resultOK {
				r.result, r.detail = resultFailed, ended.Error()
			}
		}
		succeeded[step.name] = r.result == resultOK
		results = append(results, r)
	}
	return results
}

// end returns why no step may follow, or nil.
func (s *scenario) end(ctx context.Context, step string) error {
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if s.hooks.after != nil {
		return s.hooks.after(s, step)
	}
	return nil
}

// hooks are how tests change a run. They are nil outside tests.
type hooks struct {
	// visitors replaces the simulator's handler for visitors.
	visitors func(http.Handler) http.Handler
	// sharePorts makes the connectors share ports as at Cloudflare.
	sharePorts bool
	// after is called after each step. If it fails, the scenario ends.
	after func(s *scenario, step string) error
}

// selectSteps returns the steps with the names, separated by commas, and the steps that
// these need. Without a name, it returns all.
func selectSteps(names string) ([]step, error) {
	if names == "" {
		return steps, nil
	}
	selected := map[string]bool{}
	for _, name := range strings.Split(names, ",") {
		for name != "" {
			i := slices.IndexFunc(steps, func(s step) bool { return s.name == name })
			if i < 0 {
				return nil, fmt.Errorf("-steps: there is no step %q", name)
			}
			selected[name] = true
			name = steps[i].needs
		}
	}
	return slices.DeleteFunc(slices.Clone(steps), func(s step) bool { return !selected[s.name] }), nil
}

func (s *scenario) runStep(ctx context.Context, step step) result {
	s.step = step.name
	start := time.Now()
	detail, err := step.run(s, ctx)
	r := result{step: step.name, result: resultOK, detail: detail, took: time.Since(start)}
	var skipped skippedError
	switch {
	case ctx.Err() != nil && err != nil:
		r.result, r.detail = resultFailed, "interrupted"
	case errors.As(err, &skipped):
		r.result, r.detail = resultSkipped, skipped.Error()
	case err != nil:
		r.result, r.detail = resultFailed, err.Error()
	}
	return r
}

// await waits until the condition returns nil. The error says what the last attempt
// returned.
func (s *scenario) await(ctx context.Context, what string, condition func(ctx context.Context) error) error {
	last := errors.New("it was not checked")
	interval := 3 * time.Second // Cloudflare allows four requests per second
	if s.simulator != nil {
		interval = 50 * time.Millisecond
	}
	err := wait.PollUntilContextTimeout(ctx, interval, s.patience(), true, func(ctx context.Context) (bool, error) {
		if err := condition(ctx); ctx.Err() == nil || err == nil { // at the end of the wait, each condition fails
			last = err
		}
		var permanent permanentError
		if errors.As(last, &permanent) {
			return false, last
		}
		return last == nil, nil
	})
	var permanent permanentError
	if errors.As(err, &permanent) {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err != nil {
		return fmt.Errorf("%s: not within %s: %w", what, s.patience(), last)
	}
	return nil
}

// permanentError ends a wait: another attempt fails, too.
type permanentError struct{ error }

func (e permanentError) Unwrap() error { return e.error }

// skipAccess says why Access is left out.
func (*scenario) skipAccess(context.Context) (string, error) {
	return "", skippedError("requires an Access application in the account, which the controller does not create")
}
