package binaries

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/tools/setup-envtest/remote"
	"sigs.k8s.io/controller-runtime/tools/setup-envtest/versions"
)

// releasedPrograms are the control plane programs that a release contains.
var releasedPrograms = []string{APIServer, Etcd}

// releases are the archives that the tool setup-envtest downloads. Their index
// contains their checksums.
type releases struct {
	index string        // its URL; empty for setup-envtest's default
	limit time.Duration // timeout for the whole download
}

var defaultReleases = releases{limit: 10 * time.Second}

// find returns the directory that contains the newest Kubernetes release with the minor
// version. It downloads the release unless the cache contains it.
func (r releases) find(ctx context.Context, progress io.Writer, kubernetes *version.Version) (cacheEntry, error) {
	cache, err := cacheDir()
	if err != nil {
		return cacheEntry{}, err
	}
	series := fmt.Sprintf("%d.%d", kubernetes.Major(), kubernetes.Minor())
	programs := strings.Join(releasedPrograms, " and ")
	dir := filepath.Join(cache, "releases", fmt.Sprintf("%s-%s-%s", series, runtime.GOOS, runtime.GOARCH))
	entry := cacheEntry{dir, programs, releasedPrograms, progress}
	if entry.isComplete() {
		return entry, nil
	}
	limited, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	err = entry.fill(limited, func(dir string) error {
		fmt.Fprintf(progress, "downloading %s of Kubernetes %s (for at most %s)\n", programs, series, r.limit)
		return r.download(limited, kubernetes, dir)
	})
	if errors.Is(limited.Err(), context.DeadlineExceeded) && err != nil {
		return entry, fmt.Errorf("not complete after %s", r.limit)
	}
	return entry, err
}

// download writes the programs in the newest release with the minor version to dir.
func (r releases) download(ctx context.Context, kubernetes *version.Version, dir string) error {
	client := &remote.HTTPClient{Log: logr.Discard(), IndexURL: r.index}
	all, err := client.ListVersions(ctx) // newest first
	if err != nil {
		return err
	}
	for _, release := range all {
		if uint(release.Version.Major) != kubernetes.Major() || uint(release.Version.Minor) != kubernetes.Minor() { // #nosec G115 -- not negative
			continue
		}
		i := slices.IndexFunc(release.Platforms, func(p versions.PlatformItem) bool {
			return p.OS == runtime.GOOS && p.Arch == runtime.GOARCH
		})
		if i >= 0 {
			return fetch(ctx, client, release.Version, release.Platforms[i], dir)
		}
	}
	return fmt.Errorf("no release of Kubernetes %d.%d for %s/%s", kubernetes.Major(), kubernetes.Minor(), runtime.GOOS, runtime.GOARCH)
}

// fetch downloads a release, verifies its checksum, and writes its programs to dir.
func fetch(ctx context.Context, client remote.Client, release versions.Concrete, platform versions.PlatformItem, dir string) error {
	archive, err := os.CreateTemp("", "tunnel-gateway-release-")
	if err != nil {
		return err
	}
	defer os.Remove(archive.Name()) //nolint:errcheck // a temporary file
	defer archive.Close()           //nolint:errcheck // it is only read after GetVersion
	if err := client.GetVersion(ctx, release, platform, archive); err != nil {
		return err
	}
	if _, err := archive.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := extract(archive, dir, releasedPrograms); err != nil {
		return fmt.Errorf("extract the release %s: %w", release, err)
	}
	return nil
}

// extract writes the wanted files in an archive to dir, without the archive's directories. A
// wanted file is a name, or the end of a path. It ignores other files.
func extract(archive io.Reader, dir string, wanted []string) error {
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		return err
	}
	missing := slices.Clone(wanted)
	for files := tar.NewReader(unzipped); len(missing) > 0; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%s missing", strings.Join(missing, " and "))
		}
		if err != nil {
			return err
		}
		i := slices.IndexFunc(missing, func(name string) bool { return strings.HasSuffix("/"+header.Name, "/"+name) })
		if i < 0 || header.Typeflag != tar.TypeReg {
			continue
		}
		if err := writeProgram(filepath.Join(dir, path.Base(missing[i])), files); err != nil {
			return err
		}
		missing = slices.Delete(missing, i, i+1)
	}
	return nil
}

// writeProgram writes an executable file.
func writeProgram(path string, content io.Reader) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755) // #nosec G302 G304 -- a program in the cache
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
