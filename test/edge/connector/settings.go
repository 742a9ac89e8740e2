package main

import (
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

// settings are what a connector is started with.
type settings struct {
	metrics string // the address to listen on
	edge    *url.URL
	token   string
}

// longestGrace is cloudflared's own limit.
const longestGrace = 3 * time.Minute

// parse reads the command line and the environment. No error holds any part of
// the token.
func parse(arguments []string, getenv func(string) string) (settings, error) {
	metrics, err := parseArguments(arguments)
	if err != nil {
		return settings{}, err
	}
	s := settings{metrics: metrics, token: getenv("TUNNEL_TOKEN")}
	if _, _, err := net.SplitHostPort(metrics); err != nil {
		return settings{}, fmt.Errorf("--metrics: %w", err)
	}
	if port := getenv("METRICS_PORT"); port != "" {
		s.metrics = net.JoinHostPort("127.0.0.1", port)
	}
	if !isToken(s.token) {
		return settings{}, errors.New("TUNNEL_TOKEN is not the token of a tunnel")
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

// parseArguments reads `tunnel [flags] run` and returns the metrics address. It
// refuses every flag that connectors are not deployed with, so that a wrong one
// is seen.
func parseArguments(arguments []string) (metrics string, err error) {
	if len(arguments) == 0 || arguments[0] != "tunnel" {
		return "", errors.New("the first argument must be tunnel")
	}
	flags := flag.NewFlagSet("tunnel", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // whoever gets the error says it
	flags.Bool("no-autoupdate", false, "")
	flags.StringVar(&metrics, "metrics", "", "")
	flags.Func("protocol", "", oneOf("auto", "http2", "quic"))
	flags.Func("loglevel", "", oneOf("debug", "info", "warn", "error", "fatal"))
	flags.Func("grace-period", "", func(value string) error {
		period, err := time.ParseDuration(value)
		if err == nil && (period < 0 || period > longestGrace) {
			err = fmt.Errorf("not from 0s to %s", longestGrace)
		}
		return err
	})
	if err := flags.Parse(arguments[1:]); err != nil {
		return "", err
	}
	if rest := flags.Args(); !slices.Equal(rest, []string{"run"}) {
		return "", fmt.Errorf("the flags are followed by %q, not by run alone", rest)
	}
	return metrics, nil
}

// oneOf accepts some values of a flag.
func oneOf(values ...string) func(string) error {
	return func(value string) error {
		if !slices.Contains(values, value) {
			return fmt.Errorf("not one of %s", strings.Join(values, ", "))
		}
		return nil
	}
}

// isToken reports whether a text looks like the token of a tunnel; whether it is
// one, the edge knows.
func isToken(text string) bool {
	content, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return false
	}
	var token struct{ A, T, S string }
	return json.Unmarshal(content, &token) == nil && token.A != "" && token.T != "" && token.S != ""
}
