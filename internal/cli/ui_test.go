package cli

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// uiProcess is a running command ui.
type uiProcess struct {
	link   string
	client *http.Client
	end    func() int
}

// startUI runs the command with the arguments until the test ends or end is called.
func startUI(t *testing.T, arguments ...string) *uiProcess {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, printed := io.Pipe()
	var errors strings.Builder
	status := make(chan int, 1)
	go func() {
		status <- Run(ctx, append([]string{"tunnel-gateway", "ui"}, arguments...), Streams{In: strings.NewReader(""), Out: printed, Err: &errors})
		_ = printed.Close()
	}()
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		cancel()
		t.Fatalf("ui printed no link and ended with status %d: %s", <-status, &errors)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &uiProcess{link: lines.Text(), client: &http.Client{Jar: jar}}
	p.end = func() int {
		cancel()
		go io.Copy(io.Discard, out) //nolint:errcheck // nothing more is expected
		s := <-status
		status <- s
		return s
	}
	t.Cleanup(func() { p.end() })
	return p
}

// get returns the page at the path, or at the link itself.
func (p *uiProcess) get(t *testing.T, path string) string {
	t.Helper()
	target, err := url.Parse(p.link)
	if err != nil {
		t.Fatal(err)
	}
	if path != "" {
		target.Path, target.RawQuery = path, ""
	}
	response, err := p.client.Get(target.String())
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s, %v: %s", path, response.Status, err, body)
	}
	return string(body)
}

// await waits until the table of hostnames contains the text.
func (p *uiProcess) await(t *testing.T, text string) {
	t.Helper()
	poll, timeout := time.NewTicker(50*time.Millisecond), time.After(20*time.Second)
	defer poll.Stop()
	for {
		page := p.get(t, "/hostnames")
		if strings.Contains(page, text) {
			return
		}
		select {
		case <-poll.C:
		case <-timeout:
			t.Fatalf("the page does not contain %q:\n%s", text, page)
		}
	}
}

func writeManifest(t *testing.T, file, hostname string) {
	t.Helper()
	manifest := `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared, namespace: infra}
spec:
  gatewayClassName: cloudflare-tunnel
  listeners: [{name: web, hostname: ` + hostname + `, port: 80, protocol: HTTP}]
`
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestThePageFollowsManifests(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	writeManifest(t, file, "first.example.com")
	p := startUI(t, "-f", filepath.Dir(file))
	p.get(t, "")
	p.await(t, "first.example.com")

	writeManifest(t, file, "second.example.com")
	p.await(t, "second.example.com")
	writeManifest(t, file, "-.example.com")
	p.await(t, "spec.listeners[0].hostname")
	p.await(t, "second.example.com") // what was valid remains
	writeManifest(t, file, "third.example.com")
	p.await(t, "third.example.com")
	if page := p.get(t, "/hostnames"); strings.Contains(page, "spec.listeners[0].hostname") {
		t.Error("the page shows an error that was corrected")
	}
	if status := p.end(); status != 0 {
		t.Errorf("the command ended with status %d", status)
	}
}

func TestUIAnswersOnlyLocalNames(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	writeManifest(t, file, "first.example.com")
	p := startUI(t, "-f", file)
	target, err := url.Parse(p.link)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(target.Host, "127.0.0.1:") {
		t.Errorf("the link is %s", p.link)
	}
	for host, want := range map[string]int{
		"rebound.example.com:" + target.Port(): http.StatusMisdirectedRequest,
		// Without the link's token, these addresses have no session.
		target.Host: http.StatusForbidden, "localhost:" + target.Port(): http.StatusForbidden,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+target.Host+"/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if got := response.StatusCode; got != want {
			t.Errorf("Host %s: status %d, want %d", host, got, want)
		}
	}
}

func TestUIReportsErrorsAtTheStart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	writeManifest(t, file, "first.example.com")
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	for want, arguments := range map[string][]string{
		"no-such-file.yaml":          {"-f", "no-such-file.yaml"},
		"--port selects another":     {"-f", file, "--port", port},
		"specify manifests with -f":  {file},
		"--cluster-domain":           {"-f", file, "--cluster-domain", "-"},
		"unknown flag: --why":        {"-f", file, "--why", "a.example.com"},
		"--kubeconfig must not be e": {"-f", file, "--kubeconfig", ""},
	} {
		var printed strings.Builder
		status := Run(t.Context(), append([]string{"tunnel-gateway", "ui"}, arguments...), Streams{In: strings.NewReader(""), Out: &printed, Err: &printed})
		if status != exitFailure || !strings.Contains(printed.String(), want) {
			t.Errorf("ui %s: status %d, %s", strings.Join(arguments, " "), status, printed.String())
		}
	}
}

func TestEnterPrintsAnotherLink(t *testing.T) {
	t.Parallel()
	links := 0
	onEnter(strings.NewReader("\n\n"), func() { links++ })
	if links != 2 {
		t.Errorf("%d links after Enter was pressed twice", links)
	}
}
