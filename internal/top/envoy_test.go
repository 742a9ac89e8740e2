package top

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
)

// testEnvoy is a real Envoy that counts as testdata/envoy.yaml says.
type testEnvoy struct {
	open, ready string // addresses
	process     *controllerproc.Process
}

// startEnvoy starts an Envoy that runs until the test ends.
func startEnvoy(t *testing.T) *testEnvoy {
	t.Helper()
	path, err := binaries.Envoy(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	backend := httptest.NewServer(http.HandlerFunc(answer))
	t.Cleanup(backend.Close)
	e := &testEnvoy{open: freeAddress(t), ready: freeAddress(t)}
	text, err := os.ReadFile("testdata/envoy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// A socket's path must be short.
	admin, err := os.MkdirTemp("", "top-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(admin) })
	replaced := strings.NewReplacer("30001", port(t, backend.Listener.Addr().String()), "30002", port(t, e.open), "30003", port(t, e.ready),
		"ADMIN", filepath.Join(admin, "s")).Replace(string(text))
	file := filepath.Join(dir, "envoy.yaml")
	if err := os.WriteFile(file, []byte(replaced), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(path, "-c", file, "--concurrency", "2", "--disable-hot-restart", "-l", "warn")
	command.Stdout, command.Stderr = t.Output(), t.Output()
	if e.process, err = controllerproc.Run(command); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.stop)
	for _, address := range []string{e.open, e.ready} {
		e.await(t, address)
	}
	return e
}

func (e *testEnvoy) stop() {
	e.process.Kill()
	<-e.process.Exited()
}

// await waits until Envoy has bound the address.
func (e *testEnvoy) await(t *testing.T, address string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			_ = connection.Close()
			return
		}
		select {
		case <-e.process.Exited():
			t.Fatal("Envoy ended")
		case <-ctx.Done():
			t.Fatal(err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

func port(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// answer responds as the path says.
func answer(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/error":
		w.WriteHeader(http.StatusBadGateway)
	case "/missing":
		w.WriteHeader(http.StatusNotFound)
	case "/breaks":
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "begin")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case "/grpc":
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Grpc-Status", r.URL.Query().Get("status"))
	}
}

// send sends n requests and waits for the responses.
func (e *testEnvoy) send(t *testing.T, n int, host, path string) {
	t.Helper()
	for range n {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+e.open+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		if strings.HasPrefix(path, "/grpc") {
			request.Header.Set("Content-Type", "application/grpc")
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
}

// get reads the metrics like a port-forward to the pod.
func (e *testEnvoy) get(ctx context.Context, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s%s", e.ready, path), nil)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(request)
}
