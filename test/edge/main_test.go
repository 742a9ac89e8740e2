package main

import (
	"bufio"
	"context"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFlagsAreParsed(t *testing.T) {
	s, err := parse([]string{"-origin", "app.team:80=127.0.0.1:1", "--origin=b:443=127.0.0.1:2", "-accept-invalid"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"app.team:80": "127.0.0.1:1", "b:443": "127.0.0.1:2"}
	if diff := cmp.Diff(want, s.origins); diff != "" {
		t.Errorf("origins (-want +got):\n%s", diff)
	}
	if !s.options.AcceptInvalid {
		t.Error("-accept-invalid had no effect")
	}
	if _, err := parse([]string{"unexpected"}); err == nil {
		t.Error("an unexpected argument was accepted")
	}
}

func TestEachTunnelHasItsOwnAddress(t *testing.T) {
	for _, invalid := range []string{"127.0.0.1", "127.0.0.1:http", "127.0.0.1:65536"} {
		if _, err := newAddresses(invalid); err == nil {
			t.Errorf("newAddresses(%q) did not fail", invalid)
		}
	}
	a, err := newAddresses("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		l, err := a.listen()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
	}
}

func TestRunServesTheAPIAndTheEdge(t *testing.T) {
	reader, writer := io.Pipe()
	log.SetOutput(writer)
	log.SetFlags(0)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"-api=127.0.0.1:0", "-connectors=127.0.0.1:0"})
		_ = writer.Close()
	}()
	urls := map[string]string{}
	lines := bufio.NewScanner(reader)
	for len(urls) < 2 && lines.Scan() {
		name, url, _ := strings.Cut(lines.Text(), " on ")
		urls[name] = url
	}
	go func() { _, _ = io.Copy(io.Discard, reader) }() // discard further log lines
	for name, path := range map[string]string{"API": "/accounts/any/cfd_tunnel", "connectors": "/connect"} {
		response, err := http.Post(urls[name]+path, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s without a token: %s, want 401", name, response.Status)
		}
	}
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
