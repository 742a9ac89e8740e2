package binaries

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
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
)

// modulePath is the main module, which contains the nested modules.
const modulePath = "github.com/tunnel-gateway/tunnel-gateway"

// Source is a program that a nested module builds from source.
type Source struct {
	// Name is the program's name, and the name of its directory in the cache.
	Name string
	// ImportPath is the path of the main package.
	ImportPath string
	// Module is the nested module's directory, relative to the repository.
	Module string
	// VersionModule is the module whose required version is the program's version.
	VersionModule string
	// BuildTime says in words how long the first build takes on an ordinary machine.
	BuildTime string
	// Flags returns the flags with which `go build` builds a version.
	Flags func(version string) []string
}

// Build returns the path to the program, in the version that its nested module requires.
// The first call on a machine builds it into the user's cache directory. All clones and
// processes share the result. Build reports its progress to progress.
//
// The working directory must be inside the repository, or in a module that requires it.
func (s Source) Build(ctx context.Context, progress io.Writer) (string, error) {
	root, err := Root(ctx)
	if err != nil {
		return "", err
	}
	t, err := s.target(root, progress)
	if err != nil {
		return "", err
	}
	if !t.entry.has(s.Name) {
		return t.path(), t.build(ctx)
	}
	reportFound(progress, s.Name, "the cache", t.path())
	return t.path(), nil
}

// Root returns the repository's directory.
//
// The working directory must be inside the repository, or in a module that requires it.
func Root(ctx context.Context) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", modulePath).Output()
	if err != nil {
		return "", fmt.Errorf("find the repository from the working directory: %w", withStderr(err))
	}
	return strings.TrimSpace(string(root)), nil
}

// target is a program in the version that its nested module requires.
type target struct {
	Source
	version   string
	moduleDir string // where `go build` runs
	entry     cacheEntry
}

func (s Source) target(root string, progress io.Writer) (*target, error) {
	moduleDir := filepath.Join(root, filepath.FromSlash(s.Module))
	goMod, err := os.ReadFile(filepath.Join(moduleDir, "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("read the required version of %s: %w", s.Name, err)
	}
	version, err := s.requiredVersion(goMod)
	if err != nil {
		return nil, err
	}
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	content, err := withCode(goMod, moduleDir)
	if err != nil {
		return nil, fmt.Errorf("read the code of %s: %w", s.Name, err)
	}
	dir := filepath.Join(cache, s.Name, version+"-"+s.fingerprint(content, version))
	return &target{Source: s, version: version, moduleDir: moduleDir, entry: cacheEntry{dir, s.Name, []string{s.Name}, progress}}, nil
}

// requiredVersion returns the program version that goMod requires.
func (s Source) requiredVersion(goMod []byte) (string, error) {
	file, err := modfile.Parse("go.mod", goMod, nil)
	if err != nil {
		return "", fmt.Errorf("read the required version of %s: %w", s.Name, err)
	}
	for _, r := range file.Require {
		if r.Mod.Path == s.VersionModule {
			return r.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("%s/go.mod does not require %s", s.Module, s.VersionModule)
}

// withCode returns go.mod and the module's own code. Most nested modules have none.
func withCode(goMod []byte, moduleDir string) ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(moduleDir, "*.go"))
	content := slices.Clone(goMod)
	for _, file := range files {
		code, readErr := os.ReadFile(file) // #nosec G304 -- a file of the repository
		err = errors.Join(err, readErr)
		content = append(content, code...)
	}
	return content, err
}

// fingerprint returns a hash of the module's content, the program, the flags and the
// platform. It distinguishes builds with the same version.
func (s Source) fingerprint(content []byte, version string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%q\n%s/%s", content, s.ImportPath, s.Flags(version), runtime.GOOS, runtime.GOARCH))
	return hex.EncodeToString(sum[:])[:12]
}

// path returns the path to the program in the cache.
func (t *target) path() string { return filepath.Join(t.entry.dir, t.Name) }

// build builds the program into the cache.
func (t *target) build(ctx context.Context) error {
	err := t.entry.fill(ctx, func(dir string) error { return t.compile(ctx, filepath.Join(dir, t.Name)) })
	if err != nil {
		return fmt.Errorf("build %s %s: %w", t.Name, t.version, err)
	}
	return nil
}

// compile builds the program as the file path.
func (t *target) compile(ctx context.Context, path string) error {
	start := time.Now()
	fmt.Fprintf(t.entry.progress, "building %s %s from source (%s, once per machine)\n", t.Name, t.version, t.BuildTime)
	done := reportProgress(func(passed time.Duration) {
		fmt.Fprintf(t.entry.progress, "building %s (%s)\n", t.Name, passed)
	})
	defer done()
	args := append([]string{"build"}, t.Flags(t.version)...)
	args = append(args, "-o", path, t.ImportPath)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = t.moduleDir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", t.ImportPath, err, output)
	}
	fmt.Fprintf(t.entry.progress, "%s: built in %s (%s)\n", t.Name, elapsed(start), t.path())
	return nil
}

// withStderr adds a command's error output to its error.
func withStderr(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}
