package binaries

import (
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// NPM is a package in one version, of which the tests need a file.
type NPM struct {
	Name, Version string
	// Integrity is the checksum of the package's archive, as package-lock.json has it.
	Integrity string
	// Files are the paths of the files in the archive, such as "package/axe.min.js".
	Files []string
}

// Axe is the library that finds problems of accessibility in a page.
var Axe = NPM{
	Name: "axe-core", Version: "4.14.1", Files: []string{"package/axe.min.js"},
	Integrity: "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
}

// Unpack returns the directory with the files, without the archive's directories. The first call on a machine downloads
// the package with npm, verifies its checksum, and runs none of its code. Unpack reports
// its progress to progress.
func (p NPM) Unpack(ctx context.Context, progress io.Writer) (dir string, err error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	sum := sha512.Sum512([]byte(p.Integrity))
	name := fmt.Sprintf("%s-%s-%x", strings.ReplaceAll(p.Name, "/", "-"), p.Version, sum[:6])
	var names []string
	for _, file := range p.Files {
		names = append(names, path.Base(file))
	}
	entry := cacheEntry{filepath.Join(cache, "npm", name), p.Name, names, progress}
	if entry.isComplete() {
		reportFound(progress, p.Name, "the cache", entry.dir)
		return entry.dir, nil
	}
	if err := entry.fill(ctx, func(dir string) error { return p.download(ctx, progress, dir) }); err != nil {
		return "", fmt.Errorf("download %s %s: %w", p.Name, p.Version, err)
	}
	return entry.dir, nil
}

// download writes the package's files to dir.
func (p NPM) download(ctx context.Context, progress io.Writer, dir string) error {
	fmt.Fprintf(progress, "downloading %s %s with npm (once per machine)\n", p.Name, p.Version)
	done := reportProgress(func(passed time.Duration) {
		fmt.Fprintf(progress, "downloading %s (%s)\n", p.Name, passed)
	})
	defer done()
	pack := exec.CommandContext(ctx, "npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", dir, p.Name+"@"+p.Version) // #nosec G204 -- a fixed package
	pack.Dir, pack.WaitDelay = dir, time.Second
	if output, err := pack.CombinedOutput(); err != nil {
		return fmt.Errorf("npm pack: %w: %s", err, strings.TrimSpace(string(output)))
	}
	archives, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(archives) != 1 {
		return fmt.Errorf("npm pack: got %d archives, want 1", len(archives))
	}
	content, err := os.ReadFile(archives[0])
	if err != nil {
		return err
	}
	if got := integrityOf(content); got != p.Integrity {
		return fmt.Errorf("the archive's checksum is %s, want %s", got, p.Integrity)
	}
	return errors.Join(extract(bytes.NewReader(content), dir, p.Files), os.Remove(archives[0]))
}

// integrityOf returns the checksum of an archive as npm writes it.
func integrityOf(archive []byte) string {
	sum := sha512.Sum512(archive)
	return "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}
