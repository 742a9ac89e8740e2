package main

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
)

// settings are the settings that a connector is started with.
type settings struct {
	command string // run or ready
	metrics string // the address to listen on, or to ask
	edge    *url.URL
	token   string
	host    string        // the pod's host name, or empty
	grace   time.Duration // for the requests in flight
}

// cloudflared's grace periods.
const (
	defaultGracePeriod = 30 * time.Second
	maxGracePeriod     = 3 * time.Minute
)

// parse reads the command line and the environment. Its errors never contain any part of
// the token.
func parse(arguments []string, getenv func(string) string) (settings, error) {
	s, err := parseArguments(arguments)
	if err != nil {
		return settings{}, err
	}
	if _, _, err := net.SplitHostPort(s.metrics); err != nil {
		return settings{}, fmt.Errorf("--metrics: %w", err)
	}
	if port := getenv("METRICS_PORT"); port != "" {
		s.metrics = net.JoinHostPort(cmp.Or(getenv("METRICS_HOST"), "127.0.0.1"), port)
	}
	if s.command == readyCommand {
		return s, nil
	}
	s.host = getenv("HOSTNAME")
	s.token = getenv("TUNNEL_TOKEN")
	if !isToken(s.token) {
		return settings{}, errors.New("TUNNEL_TOKEN is not a tunnel token")
	}
	s.edge, err = url.Parse(getenv("TUNNEL_EDGE"))
	if err != nil {
		return settings{}, fmt.Errorf("TUNNEL_EDGE: %w", err)
	}
	if s.edge.Scheme != "http" || s.edge.Host == "" {
		return settings{}, errors.New("TUNNEL_EDGE must be an http:// URL")
	}
	return s, nil
}

// The cloudflared commands that the deployed connectors and their probes use.
const (
	runCommand   = "run"
	readyCommand = "ready"
)

// parseArguments reads `tunnel [flags] run` or `tunnel [flags] ready`. It rejects
// every flag that connectors are not deployed with, so that a test detects an
// unexpected flag.
func parseArguments(arguments []string) (settings, error) {
	if len(arguments) == 0 || arguments[0] != "tunnel" {
		return settings{}, errors.New("the first argument must be tunnel")
	}
	s := settings{grace: defaultGracePeriod}
	flags := flag.NewFlagSet("tunnel", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints the error
	flags.Bool("no-autoupdate", false, "")
	flags.StringVar(&s.metrics, "metrics", "", "")
	flags.Func("protocol", "", oneOf("auto", "http2", "quic"))
	flags.Func("edge-ip-version", "", oneOf("auto", "4", "6"))
	flags.Func("loglevel", "", oneOf("debug", "info", "warn", "error", "fatal"))
	flags.Func("grace-period", "", func(value string) (err error) {
		s.grace, err = time.ParseDuration(value)
		if err == nil && (s.grace < 0 || s.grace > maxGracePeriod) {
			err = fmt.Errorf("must be from 0s to %s", maxGracePeriod)
		}
		return err
	})
	if err := flags.Parse(arguments[1:]); err != nil {
		return settings{}, err
	}
	s.command = flags.Arg(0)
	if flags.NArg() != 1 || s.command != runCommand && s.command != readyCommand {
		return settings{}, fmt.Errorf("the flags must be followed by run or ready only, got %q", flags.Args())
	}
	return s, nil
}

// oneOf returns a flag parser that accepts only the given values.
func oneOf(values ...string) func(string) error {
	return func(value string) error {
		if !slices.Contains(values, value) {
			return fmt.Errorf("must be one of %s", strings.Join(values, ", "))
		}
		return nil
	}
}

// isToken reports whether the text has the format of a tunnel token. Only the edge can
// check that the token is valid.
func isToken(text string) bool {
	content, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return false
	}
	var token struct{ A, T, S string }
	return json.Unmarshal(content, &token) == nil && token.A != "" && token.T != "" && token.S != ""
}
