package main

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/test/load"
)

func TestTheRunAsksBeforeTheFirstWrite(t *testing.T) {
	t.Parallel()
	p, err := newSimulator("/none/connector", hooks{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	for input, want := range map[string]bool{"y\n": true, "Y\n": true, "n\n": false, "\n": false, "": false, "yes please\n": false} {
		var out strings.Builder
		if got := confirm(options{}, p, ownPrefix, strings.NewReader(input), &out); got != want {
			t.Errorf("%q: %t, want %t", input, got, want)
		}
		for _, name := range []string{ownPrefix + "." + ownPrefix + ".e2e", ownPrefix + "-web.example.com", p.id, "Continue?"} {
			if !strings.Contains(out.String(), name) {
				t.Errorf("the question lacks %q:\n%s", name, out.String())
			}
		}
	}
	if !confirm(options{yes: true}, p, ownPrefix, strings.NewReader(""), io.Discard) {
		t.Error("-yes asks")
	}
}

func TestFlagsAndVariablesAreChecked(t *testing.T) {
	valid := testOptions(t)
	for _, name := range []string{"CLOUDFLARE_API_TOKEN", "CLOUDFLARE_ACCOUNT_ID", "CLOUDFLARE_ZONE", "CLOUDFLARED"} {
		t.Setenv(name, "")
	}
	for want, change := range map[string]func(*options){
		"-events must be at least 1s":   func(o *options) { o.events = time.Millisecond },
		"-upload at least 1":            func(o *options) { o.upload = 0 },
		`there is no step "acess"`:      func(o *options) { o.steps = "https,acess" },
		"is not set; set the API token": func(o *options) { o.simulator = false },
		"use -simulator":                func(o *options) { o.simulator, o.clean = false, ownPrefix },
	} {
		o := valid
		change(&o)
		if status, output := runCommand(t.Context(), t, o); status != statusError || !strings.Contains(output, want) {
			t.Errorf("status %d, output %q, want %q", status, output, want)
		}
	}
	t.Setenv("CLOUDFLARE_API_TOKEN", "token")
	t.Setenv("CLOUDFLARE_ACCOUNT_ID", "account")
	t.Setenv("CLOUDFLARE_ZONE", "example.com")
	o := valid
	o.simulator = false
	if status, output := runCommand(t.Context(), t, o); status != statusError || !strings.Contains(output, "download cloudflared from") {
		t.Errorf("without cloudflared: status %d, output %q", status, output)
	}
}

func TestSelectedStepsIncludeWhatTheyNeed(t *testing.T) {
	t.Parallel()
	for names, want := range map[string]string{
		"grpc":           "tunnel record grpc",
		"rollout,access": "tunnel record https rollout access",
		"removal":        "tunnel removal",
	} {
		selected, err := selectSteps(names)
		var got []string
		for _, s := range selected {
			got = append(got, s.name)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, %v, want %q", names, got, err, want)
		}
	}
}

func TestEventsAreJudged(t *testing.T) {
	t.Parallel()
	event := func(number int, late time.Duration) string {
		return fmt.Sprintf("data: %d %d\n\n", number, time.Now().Add(-late).UnixNano())
	}
	for name, c := range map[string]struct{ body, want string }{
		"complete":   {event(0, 0) + event(1, time.Minute), "1m0s <nil>"},
		"truncated":  {event(0, 0), "0s the stream ended after 1 of 2 events"},
		"a gap":      {event(0, 0) + event(2, 0), "want event 1"},
		"other text": {"<html>\n", `got "<html>", want event 0`},
	} {
		late, err := readEvents(strings.NewReader(c.body), 2)
		if got := fmt.Sprintf("%s %v", late.Round(time.Second), err); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestDifferencesAreSets(t *testing.T) {
	t.Parallel()
	got := compare(
		observations{"a": {"1", "2"}, "same": {"x"}, "not seen": {"y"}},
		observations{"a": {"2", "3"}, "same": {"x"}, "new": {"z"}})
	want := []difference{{"a", []string{"1"}, []string{"3"}}, {"new", nil, []string{"z"}}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(difference{})); diff != "" {
		t.Error(diff)
	}
}

func TestRequestsAreJudged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		failure      string
		alone, share bool // whether the result is good
	}{
		{"", true, true},
		{"0.31s POST /slow: status 502: Bad gateway", false, true},
		{"0.31s GET /fast: status 530: error code: 1033", false, false},
		{"0.31s GET /fast: status 502: Bad gateway\n0.40s GET /fast: status 530: error code: 1033", false, false},
	} {
		var r load.Result
		for failure := range strings.Lines(c.failure) {
			r.Failed++
			r.Failures = append(r.Failures, failure)
		}
		if err := judge(r); (err == nil) != c.alone {
			t.Errorf("%q: %v", c.failure, err)
		}
		if _, err := judgeShared(r); (err == nil) != c.share {
			t.Errorf("%q with shared ports: %v", c.failure, err)
		}
	}
}
