package authority

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
)

// The real Envoy identifies itself with the certificate in its Tunnel's Secret. Without
// a restart, it uses a renewed certificate and accepts a new authority.
func TestEnvoyUsesTheSecret(t *testing.T) {
	binary, err := binaries.Envoy(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(t)
	c.now = time.Now() // Envoy has no other clock
	a, first, second := c.authority(), c.tunnel("first"), c.tunnel("second")
	c.write(a, first)
	c.write(a, second)
	volume := &secretVolume{t: t, path: filepath.Join(t.TempDir(), "xds")}
	volume.update(c.files(first))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	var serving atomic.Pointer[Authority]
	serving.Store(a)
	clients := acceptClients(t, &serving, listener)
	startEnvoy(t, binary, volume.path, listener.Addr().(*net.TCPAddr).Port)
	wantNext(t, clients, a.identityOf(first))

	volume.update(c.files(second)) // as if it were a renewed certificate
	wantNext(t, clients, a.identityOf(second))

	c.delete(c.authoritySecret())
	a = c.authority()
	c.write(a, first)
	serving.Store(a)
	volume.update(c.files(first))
	wantNext(t, clients, a.identityOf(first))
}

// acceptClients accepts connections, and reports the clients' identities. It closes
// each connection, so that Envoy connects again.
func acceptClients(t *testing.T, serving *atomic.Pointer[Authority], listener net.Listener) <-chan Identity {
	identities := make(chan Identity)
	go func() {
		for {
			raw, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				t.Errorf("accept a connection: %v", err)
				return
			}
			connection := tls.Server(raw, serving.Load().ServerConfig())
			if err := connection.HandshakeContext(t.Context()); err == nil {
				if i, err := PeerIdentity(connection.ConnectionState()); err == nil {
					select {
					case identities <- i:
					case <-t.Context().Done():
					}
				}
			}
			_ = raw.Close()
		}
	}()
	return identities
}

// wantNext waits until the Envoy connects with the identity.
func wantNext(t *testing.T, clients <-chan Identity, want Identity) {
	t.Helper()
	const limit = 30 * time.Second
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for {
		select {
		case got := <-clients:
			if got == want {
				return
			}
		case <-deadline.C:
			t.Fatalf("Envoy does not connect as %s within %s", want, limit)
		}
	}
}

// startEnvoy starts an Envoy with the connectors' bootstrap and the files in the
// folder.
func startEnvoy(t *testing.T, binary, folder string, port int) {
	t.Helper()
	text, err := protojson.Marshal(envoy.Bootstrap("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		t.Fatal(err)
	}
	text = compact.Bytes()
	for from, to := range map[string]string{
		`"/run/envoy/admin.sock"`:                    fmt.Sprintf("%q", filepath.Join(t.TempDir(), "a.sock")),
		`"` + envoy.CertificatesPath:                 `"` + folder,
		fmt.Sprintf(`"portValue":%d`, envoy.PortXDS): fmt.Sprintf(`"portValue":%d`, port),
	} {
		if !bytes.Contains(text, []byte(from)) {
			t.Fatalf("the bootstrap does not contain %s", from)
		}
		text = bytes.ReplaceAll(text, []byte(from), []byte(to))
	}
	command := exec.CommandContext(t.Context(), binary, "--config-yaml", string(text), "--concurrency", "1", "--disable-hot-restart", "--log-level", "error")
	command.Stdout, command.Stderr = t.Output(), t.Output()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Wait() }) // the test's context has ended it
}

// secretVolume is a volume with a Secret's files. The kubelet replaces all files at
// once: ..data is a link to a folder.
type secretVolume struct {
	t        *testing.T
	path     string
	versions int
}

// update replaces the files.
func (v *secretVolume) update(files map[string][]byte) {
	v.t.Helper()
	v.versions++
	version := fmt.Sprintf("..%d", v.versions)
	check := func(err error) {
		if err != nil {
			v.t.Fatal(err)
		}
	}
	check(os.MkdirAll(filepath.Join(v.path, version), 0o700))
	for name, content := range files {
		// The files contain the container's paths.
		content = bytes.ReplaceAll(content, []byte(envoy.CertificatesPath), []byte(v.path))
		check(os.WriteFile(filepath.Join(v.path, version, name), content, 0o600))
		if v.versions == 1 {
			check(os.Symlink(filepath.Join("..data", name), filepath.Join(v.path, name)))
		}
	}
	check(os.Symlink(version, filepath.Join(v.path, "..data_tmp")))
	check(os.Rename(filepath.Join(v.path, "..data_tmp"), filepath.Join(v.path, "..data")))
}
