package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// existing returns the names of all tunnels and records in the simulator, as
// [remains.names] does.
func existing(p *place) (names []string) {
	for _, t := range p.simulator.Tunnels() {
		if !t.Deleted {
			names = append(names, fmt.Sprintf("tunnel %s (%s)", t.Name, t.ID))
		}
	}
	for _, z := range p.zones.Zones() {
		for _, r := range p.zones.Records(z.ID) {
			names = append(names, fmt.Sprintf("%s record %s (%s)", r.Type, r.Name, r.ID))
		}
	}
	return names
}

// expectEmpty fails the test if anything is left in the simulator, or if the program reports
// something else.
func expectEmpty(t *testing.T, p *place, output string) {
	t.Helper()
	if left := existing(p); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
	if !strings.Contains(output, "is left at Cloudflare.\n") || strings.Contains(output, "LEFT") {
		t.Error("the output does not say that nothing is left")
	}
}

// TestScenario runs all steps against the simulator. After each step, the listing for the
// removal is complete.
func TestScenario(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	var last *scenario
	o.hooks.after = func(s *scenario, step string) error {
		last = s
		listed, err := s.cloud.find(t.Context(), s.prefix)
		if err != nil {
			return err
		}
		all := existing(s.place)
		if diff := cmp.Diff(sorted(all), sorted(listed.names())); diff != "" {
			t.Errorf("after %s (-existing +listed):\n%s", step, diff)
		}
		if want := step != "removal"; want != (len(all) > 0) {
			t.Errorf("after %s, %q exist", step, all)
		}
		return nil
	}
	status, output := runCommand(t.Context(), t, o)
	if status != statusOK {
		t.Errorf("status %d, want %d", status, statusOK)
	}
	if skipped := resultsOf(output, resultSkipped); !slices.Equal(skipped, []string{"access"}) {
		t.Errorf("skipped %q, want only access", skipped)
	}
	if ok := resultsOf(output, resultOK); len(ok) != len(steps)-1 {
		t.Errorf("ok are %q, want %d", ok, len(steps)-1)
	}
	expectEmpty(t, last.place, output)
	compareObservations(t, last.seen)
}

func sorted(values []string) []string { return slices.Sorted(slices.Values(values)) }

// resultsOf returns the steps that have the result in the table.
func resultsOf(output, result string) (names []string) {
	for line := range strings.Lines(output) {
		fields := strings.Fields(line)
		if len(fields) > 1 && fields[1] == result {
			names = append(names, fields[0])
		}
	}
	return names
}

// compareObservations compares the observations with the file, or writes the file.
func compareObservations(t *testing.T, seen observations) {
	t.Helper()
	path := filepath.Join("testdata", "simulator.json")
	if *update {
		text, err := json.MarshalIndent(seen, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(text, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(expected(), seen); diff != "" {
		t.Errorf("%s (-file +run; -update writes the file):\n%s", path, diff)
	}
}

// otherEdge is an edge that differs from the simulator: it redirects http, refuses gRPC,
// collects responses, and limits uploads.
func otherEdge(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cf-Other", "x")
		switch {
		case r.TLS == nil:
			http.Redirect(w, r, "https://"+r.Host+r.URL.Path, http.StatusMovedPermanently) // #nosec G710 -- only the test connects
		case r.Header.Get("Content-Type") == "application/grpc":
			w.WriteHeader(http.StatusForbidden)
		case r.URL.Path == uploadPath:
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		case r.URL.Path == eventsPath:
			collected := httptest.NewRecorder()
			next.ServeHTTP(collected, r)
			w.WriteHeader(collected.Code)
			_, _ = io.Copy(w, collected.Body)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// TestInterruptOnAnotherEdge runs the steps on an edge that differs from the simulator, with
// the ports that the real cloudflared uses, and interrupts the connectors' rollout.
func TestInterruptOnAnotherEdge(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.steps, o.upload = "schemes,grpc,events,upload,connectors,access", 1
	o.hooks.visitors, o.hooks.sharePorts = otherEdge, true
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var last *scenario
	o.hooks.after = func(s *scenario, step string) error {
		last = s
		if step == "upload" {
			go func() {
				for pods, _ := s.connectors(ctx); len(pods) < 2 && ctx.Err() == nil; pods, _ = s.connectors(ctx) {
					time.Sleep(10 * time.Millisecond) //nolint:forbidigo // until the rollout has begun
				}
				interrupt()
			}()
		}
		return nil
	}
	status, output := runCommand(ctx, t, o)
	if status != statusInterrupted {
		t.Errorf("status %d, want %d", status, statusInterrupted)
	}
	if failed := resultsOf(output, resultFailed); !slices.Equal(failed, []string{"grpc", "events", "upload", "connectors"}) {
		t.Errorf("failed %q", failed)
	}
	for _, want := range []string{
		"turn always_use_https off in the zone", "turn gRPC on in the Network settings", "late\n", "status 413", "interrupted",
		"https: headers of the response", "Cf-Other\n",
		"schemes: status of http where the Gateway redirects  302                 301\n",
	} {
		if !strings.Contains(output, want) {
			t.Errorf("the output lacks %q", want)
		}
	}
	expectEmpty(t, last.place, output)
}

// TestFailureAfterTheTunnel ends a run at its beginning, while the controller creates the
// records, and loses the first attempt to delete the tunnel.
func TestFailureAfterTheTunnel(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	var last *scenario
	o.hooks.after = func(s *scenario, _ string) error {
		last = s
		s.simulator.Inject(simulator.Fault{Method: http.MethodDelete, Path: "/accounts/*/cfd_tunnel/*", Status: http.StatusInternalServerError, Times: 1})
		return errors.New("a fault in the test")
	}
	status, output := runCommand(t.Context(), t, o)
	if status != statusFailed {
		t.Errorf("status %d, want %d", status, statusFailed)
	}
	if skipped := resultsOf(output, resultSkipped); len(skipped) != len(steps)-1 {
		t.Errorf("skipped %q, want all other steps", skipped)
	}
	if !strings.Contains(output, "\nfound tunnel "+last.prefix) {
		t.Error("the output does not name the tunnel that was removed")
	}
	expectEmpty(t, last.place, output)
}
