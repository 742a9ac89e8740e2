package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// scenario is one run of the steps.
type scenario struct {
	*bed
	cloud  *cloud
	events time.Duration
	upload int64 // in bytes
	// after is called after each step. If it fails, the scenario ends. It is nil outside
	// tests.
	after func(step string) error

	step   string // the running step
	seen   observations
	tunnel provider.Tunnel
}

// step is a part of the scenario.
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

// The results of a step.
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
	results := make([]result, 0, len(steps))
	succeeded := map[string]bool{"": true}
	var ended error
	for _, step := range steps {
		r := result{step: step.name, result: resultSkipped}
		switch {
		case ended != nil:
			r.detail = ended.Error()
		case !succeeded[step.needs]:
			r.detail = "the step " + step.needs + " has failed"
		case os.Getenv("ONLY") != "" && !strings.Contains(os.Getenv("ONLY"), step.name):
		default:
			r = s.runStep(ctx, step)
			ended = s.end(ctx, step.name)
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
	if s.after != nil {
		return s.after(step)
	}
	return nil
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
	interval := time.Second
	if s.simulator != nil {
		interval = 50 * time.Millisecond
	}
	err := wait.PollUntilContextTimeout(ctx, interval, s.patience(), true, func(ctx context.Context) (bool, error) {
		if err := condition(ctx); ctx.Err() == nil || err == nil { // at the end of the wait, each condition fails
			last = err
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%s: not within %s: %w", what, s.patience(), last)
	}
	return nil
}

// skipAccess says why Access is left out.
func (*scenario) skipAccess(context.Context) (string, error) {
	return "", skippedError("requires an Access application in the account, which the controller does not create")
}
