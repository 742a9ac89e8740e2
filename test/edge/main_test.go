package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	s, err := parse([]string{"-origin", "app.team:80=127.0.0.1:1", "--origin=b:443=127.0.0.1:2", "-accept-invalid"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"app.team:80": "127.0.0.1:1", "b:443": "127.0.0.1:2"}
	if diff := cmp.Diff(want, s.origins); diff != "" {
		t.Errorf("origins (-want +got):\n%s", diff)
	}
	if !s.options.AcceptInvalid {
		t.Error("-accept-invalid was not taken")
	}
	if _, err := parse([]string{"surplus"}); err == nil {
		t.Error("an argument was accepted")
	}
}

func TestAddresses(t *testing.T) {
	for _, bad := range []string{"127.0.0.1", "127.0.0.1:http", "127.0.0.1:65536"} {
		if _, err := newAddresses(bad); err == nil {
			t.Errorf("newAddresses(%q) succeeded", bad)
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
