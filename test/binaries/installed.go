package binaries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/util/version"
)

// The environment variables that this package reads.
const (
	pinnedVariable = "PINNED_BINARIES"    // ignores installed programs if true
	assetsVariable = "KUBEBUILDER_ASSETS" // folder with kube-apiserver and etcd
	envoyVariable  = "ENVOY"              // path to Envoy
)

// isPinned reports whether only pinned versions may be used.
func isPinned() (bool, error) {
	value := os.Getenv(pinnedVariable)
	if value == "" {
		return false, nil
	}
	pinned, err := strconv.ParseBool(value)
	if err != nil {
		return false, fmt.Errorf("%s is %q; set it to true or false", pinnedVariable, value)
	}
	return pinned, nil
}

// findInstalled returns the path and version of a program in KUBEBUILDER_ASSETS or in the
// PATH. It reports each program that it skips. The path is empty if there is none in a
// required version.
func findInstalled(ctx context.Context, progress io.Writer, name string, required minorRange) (path string, v *version.Version) {
	for _, candidate := range installed(progress, name) {
		if v := candidate.accept(ctx, progress, name, required); v != nil {
			return candidate.path, v
		}
	}
	return "", nil
}

// accept returns the candidate's version, or nil if it is not in the required range. It
// reports the result.
func (c candidate) accept(ctx context.Context, progress io.Writer, name string, required minorRange) *version.Version {
	v, err := versionOf(ctx, c.path)
	switch {
	case err != nil:
		fmt.Fprintf(progress, "%s: skipped the program from %s: %v\n", name, c.from, err)
	case !required.contains(v):
		fmt.Fprintf(progress, "%s: skipped %s from %s: its version is %s, but version %s is required\n",
			name, c.path, c.from, v, required)
	default:
		reportFound(progress, name, c.from, c.path)
		return v
	}
	return nil
}

// candidate is a program that is installed on the machine.
type candidate struct{ path, from string }

// installed returns the programs with a name in KUBEBUILDER_ASSETS and in the PATH.
func installed(progress io.Writer, name string) (candidates []candidate) {
	if dir := os.Getenv(assetsVariable); dir != "" {
		path := absolute(filepath.Join(dir, name))
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) { // #nosec G703 -- the user names the folder
			fmt.Fprintf(progress, "%s: not in %s (%s)\n", name, assetsVariable, dir)
		} else {
			candidates = append(candidates, candidate{path, assetsVariable})
		}
	}
	if path, err := exec.LookPath(name); err == nil {
		candidates = append(candidates, candidate{absolute(path), "the PATH"})
	}
	return candidates
}

// absolute returns the absolute path, because the programs run in other directories.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// reportFound reports where a program was found.
func reportFound(progress io.Writer, name, from, path string) {
	fmt.Fprintf(progress, "%s: from %s (%s)\n", name, from, path)
}
