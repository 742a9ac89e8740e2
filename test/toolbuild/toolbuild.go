package toolbuild

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/mod/modfile"
)

// modulePath is the module that holds the nested ones.
const modulePath = "github.com/tunnel-gateway/tunnel-gateway"

// Program is one main package, and the name of its binary.
type Program struct{ Name, ImportPath string }

// Set is what is built together, from one nested module.
type Set struct {
	// Name is what progress calls the set, and the cache with dashes for spaces.
	Name string
	// Module is the directory of the nested module below the repository's root.
	Module string
	// BuildTime is how long the first build takes on an ordinary machine, in words.
	BuildTime string
	Programs  []Program
	// RequiredModules are the modules that the nested module has to require.
	RequiredModules []string
	// Plan says how the set is built, given the version of each required module.
	Plan func(versions map[string]string) Plan
}

// Plan is how a set is built.
type Plan struct {
	// Title names the programs and their versions for people.
	Title string
	// Key begins the name of the binaries' directory.
	Key string
	// Flags are those of `go build`.
	Flags []string
}

// Build returns the directory that holds the programs of s, in the versions
// that its nested module requires. The first call on a machine builds them into
// the user's cache directory; every clone and process shares the result. What
// it does is written to progress.
//
// The working directory must be inside the repository, or in a module that
// requires it.
func (s Set) Build(ctx context.Context, progress io.Writer) (string, error) {
	b, err := s.build(ctx, progress)
	if err != nil {
		return "", fmt.Errorf("preparing the %s: %w", s.Name, err)
	}
	if err := b.ensure(ctx); err != nil {
		return "", fmt.Errorf("building the %s: %w", s.Name, err)
	}
	return b.dir, nil
}

// Root returns the directory of the repository.
//
// The working directory must be inside the repository, or in a module that
// requires it.
func Root(ctx context.Context) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", modulePath).Output()
	if err != nil {
		return "", fmt.Errorf("finding the repository from the working directory: %w", withStderr(err))
	}
	return strings.TrimSpace(string(root)), nil
}

func (s Set) build(ctx context.Context, progress io.Writer) (*build, error) {
	root, err := Root(ctx)
	if err != nil {
		return nil, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("finding the user's cache directory: %w", err)
	}
	moduleDir := filepath.Join(root, filepath.FromSlash(s.Module))
	goMod, err := os.ReadFile(filepath.Join(moduleDir, "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("reading the versions: %w", err)
	}
	versions, err := s.versions(goMod)
	if err != nil {
		return nil, err
	}
	plan := s.Plan(versions)
	key := plan.Key + "-" + fingerprint(goMod, s.Programs, plan.Flags)
	return &build{
		set:       s,
		plan:      plan,
		moduleDir: moduleDir,
		dir:       filepath.Join(cache, "tunnel-gateway", strings.ReplaceAll(s.Name, " ", "-"), key),
		progress:  progress,
	}, nil
}

// versions returns the version of each module that goMod requires.
func (s Set) versions(goMod []byte) (map[string]string, error) {
	file, err := modfile.Parse("go.mod", goMod, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the versions: %w", err)
	}
	versions := map[string]string{}
	for _, r := range file.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	for _, path := range s.RequiredModules {
		if versions[path] == "" {
			return nil, fmt.Errorf("%s/go.mod does not require %s", s.Module, path)
		}
	}
	return versions, nil
}

// fingerprint tells apart binaries of the same versions that are other programs,
// or were built from other dependencies, with other flags or for another
// platform.
func fingerprint(goMod []byte, programs []Program, flags []string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%q\n%q\n%s/%s", goMod, programs, flags, runtime.GOOS, runtime.GOARCH))
	return hex.EncodeToString(sum[:])[:12]
}

// withStderr adds what a command printed to the error that it ended with.
func withStderr(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}
