package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/mod/modfile"
)

// The nested module whose requirements pin the control plane, and the two of
// them that name its versions.
const (
	modulePath       = "github.com/tunnel-gateway/tunnel-gateway"
	binariesDir      = "test/cluster/binaries"
	kubernetesModule = "k8s.io/kubernetes"
	etcdModule       = "go.etcd.io/etcd/server/v3"
)

// controllersName is the program that runs Kubernetes' own controllers.
const controllersName = "kube-controller-manager"

const (
	// progressInterval is how often a running build says that it still runs.
	progressInterval = 5 * time.Second
	// lockInterval is how often a lock that another process holds is tried.
	lockInterval = 200 * time.Millisecond
)

// command is one program of the control plane.
type command struct{ name, importPath string }

var commands = []command{
	{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"},
	{controllersName, "k8s.io/kubernetes/cmd/" + controllersName},
	{"etcd", etcdModule},
}

// Binaries returns the directory that holds kube-apiserver,
// kube-controller-manager and etcd, in the versions that
// test/cluster/binaries/go.mod requires. The first call on a machine builds
// them into the user's cache directory, which takes about six minutes; every
// clone and process shares the result. What it does is written to progress.
//
// The working directory must be inside the repository.
func Binaries(ctx context.Context, progress io.Writer) (string, error) {
	b, err := newBuild(ctx, progress)
	if err != nil {
		return "", fmt.Errorf("preparing the control plane: %w", err)
	}
	if err := b.ensure(ctx); err != nil {
		return "", fmt.Errorf("building the control plane: %w", err)
	}
	return b.dir, nil
}

// build makes one set of binaries.
type build struct {
	moduleDir string // where `go build` runs
	dir       string // where the binaries go
	title     string
	flags     []string
	progress  io.Writer
}

func newBuild(ctx context.Context, progress io.Writer) (*build, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", modulePath).Output()
	if err != nil {
		return nil, fmt.Errorf("finding the repository from the working directory: %w", withStderr(err))
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("finding the user's cache directory: %w", err)
	}
	moduleDir := filepath.Join(strings.TrimSpace(string(root)), filepath.FromSlash(binariesDir))
	goMod, err := os.ReadFile(filepath.Join(moduleDir, "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("reading the versions: %w", err)
	}
	versions, err := requiredVersions(goMod)
	if err != nil {
		return nil, err
	}
	kubernetes, etcd := versions[kubernetesModule], versions[etcdModule]
	flags := buildFlags(kubernetes)
	key := fmt.Sprintf("%s-etcd-%s-%s", kubernetes, etcd, fingerprint(goMod, commands, flags))
	return &build{
		moduleDir: moduleDir,
		dir:       filepath.Join(cache, "tunnel-gateway", "control-plane", key),
		title:     fmt.Sprintf("Kubernetes %s (API server and controller manager) with etcd %s", kubernetes, etcd),
		flags:     flags,
		progress:  progress,
	}, nil
}

// requiredVersions returns the version of each module that goMod requires.
func requiredVersions(goMod []byte) (map[string]string, error) {
	file, err := modfile.Parse("go.mod", goMod, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the versions: %w", err)
	}
	versions := map[string]string{}
	for _, r := range file.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	for _, path := range []string{kubernetesModule, etcdModule} {
		if versions[path] == "" {
			return nil, fmt.Errorf("%s/go.mod does not require %s", binariesDir, path)
		}
	}
	return versions, nil
}

// buildFlags returns the flags of `go build`. Kubernetes learns its version at
// link time; the date is fixed so that building again changes nothing.
func buildFlags(version string) []string {
	major, minor, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	ldflags := []string{"-s", "-w"}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, variable := range []string{
			"gitVersion=" + version, "gitMajor=" + major, "gitMinor=" + minor,
			"buildDate=1970-01-01T00:00:00Z", "gitTreeState=archive",
		} {
			ldflags = append(ldflags, "-X", pkg+"."+variable)
		}
	}
	return []string{
		"-mod=readonly", "-trimpath", "-tags", "selinux,notest,grpcnotrace",
		"-ldflags", strings.Join(ldflags, " "),
	}
}

// fingerprint tells apart binaries of the same versions that are other programs,
// or were built from other dependencies, with other flags or for another
// platform.
func fingerprint(goMod []byte, programs []command, flags []string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%q\n%q\n%s/%s", goMod, programs, flags, runtime.GOOS, runtime.GOARCH))
	return hex.EncodeToString(sum[:])[:12]
}

// ensure builds the binaries unless they are there. They appear under their
// name all at once, when the last one is done: a build that is interrupted
// leaves nothing that looks finished.
func (b *build) ensure(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(b.dir), 0o750); err != nil {
		return err
	}
	unlock, err := b.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()

	if _, err := os.Stat(b.dir); err == nil {
		b.say("%s (cached)", b.title)
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	b.say("building %s; once per machine, about six minutes", b.title)
	partial := b.dir + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	start := time.Now()
	for _, c := range commands {
		if err := b.compile(ctx, c, partial, start); err != nil {
			return err
		}
	}
	if err := os.Rename(partial, b.dir); err != nil {
		return err
	}
	b.say("built in %s, kept in %s", elapsed(start), b.dir)
	return nil
}

// say writes a line of progress.
func (b *build) say(format string, a ...any) {
	fmt.Fprintf(b.progress, "control plane: "+format+"\n", a...)
}

// lock holds off other processes, and waits for one that is building.
func (b *build) lock(ctx context.Context) (unlock func(), err error) {
	done := every(progressInterval, func(waited time.Duration) {
		b.say("waiting for another process that builds it (%s)", waited)
	})
	defer done()
	lock := flock.New(b.dir + ".lock")
	if _, err := lock.TryLockContext(ctx, lockInterval); err != nil {
		return nil, fmt.Errorf("waiting for the lock %s: %w", lock.Path(), err)
	}
	return func() { _ = lock.Close() }, nil
}

// compile builds one command into dir.
func (b *build) compile(ctx context.Context, c command, dir string, start time.Time) error {
	done := every(progressInterval, func(time.Duration) {
		b.say("building %s (%s)", c.name, elapsed(start))
	})
	defer done()
	args := append([]string{"build"}, b.flags...)
	args = append(args, "-o", filepath.Join(dir, c.name), c.importPath)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = b.moduleDir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", c.importPath, err, output)
	}
	return nil
}

// every calls report at each interval, with the time that has passed, until
// the function that it returns is called.
func every(interval time.Duration, report func(passed time.Duration)) (stop func()) {
	start, stopped, finished := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(finished)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				report(elapsed(start))
			case <-stopped:
				return
			}
		}
	}()
	return func() { close(stopped); <-finished }
}

func elapsed(since time.Time) time.Duration { return time.Since(since).Round(time.Second) }

// withStderr adds what a command printed to the error that it ended with.
func withStderr(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}
