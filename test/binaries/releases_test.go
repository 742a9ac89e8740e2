package binaries

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// releaseServer serves an index with several releases, and their archives.
type releaseServer struct {
	*httptest.Server
	archives map[string][]byte // by name
	checksum map[string]string // in the index, if it differs from the archive's
	hangs    string            // the path whose answer never ends
	requests atomic.Int32
}

func newReleaseServer(t *testing.T) *releaseServer {
	t.Helper()
	s := &releaseServer{archives: map[string][]byte{}, checksum: map[string]string{}}
	for _, version := range []string{"v1.35.9", "v1.36.0", "v1.36.2", "v1.37.0"} {
		s.archives[archiveName(version)] = releaseArchive(t, map[string]string{
			APIServer: "#!/bin/sh\necho Kubernetes " + version + "\n",
			Etcd:      "#!/bin/sh\necho etcd Version: 3.6.5\n",
			"kubectl": "#!/bin/sh\n",
		})
	}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func archiveName(version string) string {
	return fmt.Sprintf("envtest-%s-%s-%s.tar.gz", version, runtime.GOOS, runtime.GOARCH)
}

func (s *releaseServer) releases() releases {
	return releases{index: s.URL + "/index.yaml", limit: time.Minute}
}

func (s *releaseServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	if r.URL.Path == s.hangs {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	}
	if archive := s.archives[strings.TrimPrefix(r.URL.Path, "/")]; archive != nil {
		_, _ = w.Write(archive)
		return
	}
	fmt.Fprintln(w, "releases:")
	for name, archive := range s.archives {
		sum := sha512.Sum512(archive)
		checksum := hex.EncodeToString(sum[:])
		if wrong, ok := s.checksum[name]; ok {
			checksum = wrong
		}
		version := strings.Split(name, "-")[1]
		fmt.Fprintf(w, "  %s:\n    %s: {hash: %q, selfLink: %q}\n", version, name, checksum, s.URL+"/"+name)
	}
}

// releaseArchive returns an archive with executable files in the releases' folder.
func releaseArchive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for name, content := range files {
		check(t, archive.WriteHeader(&tar.Header{Name: "controller-tools/envtest/" + name, Mode: 0o755, Size: int64(len(content))}))
		_, err := archive.Write([]byte(content))
		check(t, err)
	}
	check(t, archive.Close())
	check(t, zipped.Close())
	return out.Bytes()
}

// TestMissingProgramsAreDownloaded checks that the newest patch version for the required
// minor version is downloaded, once.
func TestMissingProgramsAreDownloaded(t *testing.T) {
	m := newMachine(t)
	server := newReleaseServer(t)
	paths, output := m.find(server.releases())
	if got := built(output); !slices.Equal(got, []string{ControllerManager}) {
		t.Errorf("built %v, want only %s", got, ControllerManager)
	}
	if v, err := versionOf(t.Context(), paths[APIServer]); err != nil || v.String() != "1.36.2" {
		t.Errorf("got an API server of version %s, %v, want 1.36.2", v, err)
	}
	checkOutput(t, output, "downloading kube-apiserver and etcd of Kubernetes 1.36 (for at most 1m0s)")
	requests := server.requests.Load()
	if _, output = m.find(server.releases()); strings.Contains(output, "downloading") || server.requests.Load() != requests {
		t.Error("the second call downloaded the release again")
	}
	checkOutput(t, output, "kube-apiserver: from a release in the cache (", "etcd: from a release in the cache (")
}

func TestFailedDownloadLeadsToABuild(t *testing.T) {
	newest := archiveName("v1.36.2")
	for name, test := range map[string]struct {
		change func(*testing.T, *releaseServer)
		output string
	}{
		"an archive with another checksum": {
			func(_ *testing.T, s *releaseServer) { s.checksum[newest] = strings.Repeat("0", 128) },
			"the download failed: checksum mismatch for " + newest,
		},
		"an archive without a checksum": {
			func(_ *testing.T, s *releaseServer) { s.checksum[newest] = "" }, "the download failed: checksum mismatch for " + newest,
		},
		"an archive without etcd": {
			func(t *testing.T, s *releaseServer) {
				s.archives[newest] = releaseArchive(t, map[string]string{APIServer: "#!/bin/sh\n"})
			}, "the download failed: extract the release 1.36.2: etcd missing",
		},
		"an index without the version": {
			func(_ *testing.T, s *releaseServer) {
				delete(s.archives, newest)
				delete(s.archives, archiveName("v1.36.0"))
			}, "the download failed: no release of Kubernetes 1.36 for ",
		},
		"a server that is not reachable": {func(_ *testing.T, s *releaseServer) { s.Close() }, "the download failed: "},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			server := newReleaseServer(t)
			test.change(t, server)
			_, output := m.find(server.releases())
			if got := built(output); len(got) != len(controlPlane) {
				t.Errorf("built %v, want all programs", got)
			}
			checkOutput(t, output, test.output)
		})
	}
}

// TestHangingDownloadIsGivenUp lets the index or the archive hang.
func TestHangingDownloadIsGivenUp(t *testing.T) {
	for _, hangs := range []string{"/index.yaml", "/" + archiveName("v1.36.2")} {
		m := newMachine(t)
		server := newReleaseServer(t)
		server.hangs = hangs
		limited := server.releases()
		limited.limit = 200 * time.Millisecond
		_, output := m.find(limited)
		if got := built(output); len(got) != len(controlPlane) {
			t.Errorf("built %v, want all programs", got)
		}
		checkOutput(t, output, "the download failed: not complete after 200ms")
	}
}
