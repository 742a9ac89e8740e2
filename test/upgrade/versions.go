package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
)

// The versions. Each has a directory with the binary, and a chart.
const (
	earlier = "earlier"
	present = "present"
)

// repository returns the image repository of a version, which selects its program on the
// node.
func repository(version string) string { return "upgrade.test/" + version }

// source returns the directory with a version's source.
func source(dir, version string) string { return filepath.Join(dir, version, "source") }

// program returns the path to a version's binary.
func program(dir, version string) string { return filepath.Join(dir, version, "tunnel-gateway") }

// chart returns the directory with a version's chart.
func chart(dir, version string) string {
	return filepath.Join(source(dir, version), "charts", "tunnel-gateway")
}

// prepare builds and downloads the programs, for which the namespace has no network.
func prepare(ctx context.Context, dir, from string) error {
	if _, err := binaries.ControlPlane(ctx, os.Stderr, binaries.APIServer, binaries.Etcd, binaries.ControllerManager); err != nil {
		return err
	}
	if _, err := binaries.Envoy(ctx, os.Stderr); err != nil {
		return err
	}
	if _, err := findHelm(ctx); err != nil {
		return err
	}
	root, err := binaries.Root(ctx)
	if err != nil {
		return err
	}
	printStep("building %s and the working tree", from)
	if err := extract(ctx, root, from, source(dir, earlier)); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(dir, present), 0o700); err != nil {
		return err
	}
	if err := os.Symlink(root, source(dir, present)); err != nil {
		return err
	}
	for _, version := range []string{earlier, present} {
		if err := build(ctx, source(dir, version), program(dir, version), "./cmd/tunnel-gateway"); err != nil {
			return err
		}
	}
	return build(ctx, root, dir+"/", "./test/edge/connector", "./test/edge/envoy")
}

// extract writes the files of a revision to the directory.
func extract(ctx context.Context, root, revision, directory string) error {
	archive, err := exec.CommandContext(ctx, "git", "-C", root, "archive", "--format=tar", revision+"^{commit}").Output() // #nosec G204 -- the user sets the revision
	if err != nil {
		return fmt.Errorf("read the files of revision %s: %w", revision, err)
	}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return err
	}
	unpack := exec.CommandContext(ctx, "tar", "-x", "-C", directory) // #nosec G204 -- a temporary directory
	unpack.Stdin = bytes.NewReader(archive)
	if output, err := unpack.CombinedOutput(); err != nil {
		return fmt.Errorf("unpack revision %s: %w\n%s", revision, err, output)
	}
	return nil
}

// build builds the packages. The versions share the build cache, because the binaries do
// not contain the paths to their sources.
func build(ctx context.Context, directory, output string, packages ...string) error {
	command := exec.CommandContext(ctx, "go", append([]string{"build", "-trimpath", "-buildvcs=false", "-o", output}, packages...)...) // #nosec G204 -- fixed packages
	command.Dir, command.Env = directory, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s in %s: %w\n%s", strings.Join(packages, ", "), directory, err, text)
	}
	return nil
}

// findHelm builds Helm, unless it is in the build cache, and returns its path.
func findHelm(ctx context.Context) (string, error) {
	root, err := binaries.Root(ctx)
	if err != nil {
		return "", err
	}
	path, err := exec.CommandContext(ctx, "go", "tool", "-C", filepath.Join(root, "test", "interop", "chart"), "-n", "helm").Output() // #nosec G204 -- fixed arguments
	if err != nil {
		return "", fmt.Errorf("build Helm: %w", err)
	}
	return strings.TrimSpace(string(path)), nil
}
