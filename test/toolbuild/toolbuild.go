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

// modulePath is the path of the main module, which contains the nested modules.
const modulePath = "github.com/tunnel-gateway/tunnel-gateway"

// Program is a main package and the name of its binary.
type Program struct{ Name, ImportPath string }

// Set is a set of programs that are built together from one nested module.
type Set struct {
	// Name is the name of the set in progress messages. The cache directory has the
	// same name, with dashes for spaces.
	Name string
	// Module is the directory of the nested module, relative to the repository.
	Module string
	// BuildTime is the time of the first build on an ordinary machine, in words.
	BuildTime string
	Programs  []Program
	// RequiredModules are the modules that the nested module must require.
	RequiredModules []string
	// Plan returns how to build the set, given the version of each required module.
	Plan func(versions map[string]string) Plan
}

// Plan describes how a set is built.
type Plan struct {
	// Title is the names and versions of the programs in progress messages.
	Title string
	// Key is the prefix of the name of the directory that contains the binaries.
	Key string
	// Flags are the flags of `go build`.
	Flags []string
}

// Build returns the directory that contains the programs of s, in the versions
// that its nested module requires. The first call on a machine builds them into
// the user's cache directory. All clones and processes share the result. Build
// reports its progress to progress.
//
// The working directory must be inside the repository, or in a module that
// requires it.
func (s Set) Build(ctx context.Context, progress io.Writer) (string, error) {
	b, err := s.build(ctx, progress)
	if err != nil {
		return "", fmt.Errorf("prepare the %s: %w", s.Name, err)
	}
	if err := b.ensure(ctx); err != nil {
		return "", fmt.Errorf("build the %s: %w", s.Name, err)
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
		return "", fmt.Errorf("find the repository from the working directory: %w", withStderr(err))
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
		return nil, fmt.Errorf("find the user's cache directory: %w", err)
	}
	moduleDir := filepath.Join(root, filepath.FromSlash(s.Module))
	goMod, err := os.ReadFile(filepath.Join(moduleDir, "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("read the required versions: %w", err)
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

// versions returns the version of each module that goMod requires. It fails if a
// required module of the set is missing.
func (s Set) versions(goMod []byte) (map[string]string, error) {
	file, err := modfile.Parse("go.mod", goMod, nil)
	if err != nil {
		return nil, fmt.Errorf("read the required versions: %w", err)
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

// fingerprint returns a hash of the dependencies, the programs, the flags and the
// platform. It distinguishes builds of the same versions.
func fingerprint(goMod []byte, programs []Program, flags []string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%q\n%q\n%s/%s", goMod, programs, flags, runtime.GOOS, runtime.GOARCH))
	return hex.EncodeToString(sum[:])[:12]
}

// withStderr adds the error output of a command to its error.
func withStderr(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}
