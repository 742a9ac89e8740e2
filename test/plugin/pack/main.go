// Command pack packs the binaries of the kubectl plugin for a release, and writes their
// checksums and the manifest for krew:
//
//	pack -version v1.2.3 -time 1700000000 -url <address of the archives> -license LICENSE -template .krew.yaml <directory>
//
// The directory has the binaries in folders with names such as bin/linux_amd64. The same binaries
// give the same bytes.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"
)

// release describes the archives of a release.
type release struct {
	// TagName is the version, such as v1.2.3.
	TagName   string
	Platforms []platform

	url, license, directory string
	modified                time.Time
}

// platform is an archive in the manifest.
type platform struct {
	OS, Arch, Binary, URI, SHA256 string
}

func main() {
	r := &release{}
	seconds := flag.Int64("time", 0, "modification time of the files, in seconds since 1970")
	manifest := flag.String("template", ".krew.yaml", "template of the manifest")
	flag.StringVar(&r.TagName, "version", "", "version of the release")
	flag.StringVar(&r.url, "url", "", "address of the folder that has the archives")
	flag.StringVar(&r.license, "license", "LICENSE", "file with the license")
	flag.Parse()
	r.directory, r.modified = flag.Arg(0), time.Unix(*seconds, 0).UTC()
	if err := r.write(*manifest); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

// write writes the archives, checksums.txt and the manifest into the directory.
func (r *release) write(manifest string) error {
	folders, err := filepath.Glob(filepath.Join(r.directory, "bin", "*_*"))
	if err != nil {
		return fmt.Errorf("list the binaries: %w", err)
	}
	if len(folders) == 0 {
		return fmt.Errorf("%s has no folder bin/<os>_<arch> with a binary", r.directory)
	}
	var sums strings.Builder
	for _, folder := range folders {
		p, archive, err := r.pack(folder)
		if err != nil {
			return fmt.Errorf("pack %s: %w", folder, err)
		}
		r.Platforms = append(r.Platforms, p)
		fmt.Fprintf(&sums, "%s  %s\n", p.SHA256, archive)
	}
	filled, err := r.fill(manifest)
	if err != nil {
		return err
	}
	name := "tunnel-gateway.yaml" // krew requires the plugin's name
	sum := sha256.Sum256(filled)
	fmt.Fprintf(&sums, "%s  %s\n", hex.EncodeToString(sum[:]), name)
	if err := os.WriteFile(filepath.Join(r.directory, name), filled, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.directory, "checksums.txt"), []byte(sums.String()), 0o644)
}

// pack packs a folder's binary with the license. It returns the archive's name.
func (r *release) pack(folder string) (platform, string, error) {
	system, architecture, _ := strings.Cut(filepath.Base(folder), "_")
	p := platform{OS: system, Arch: architecture, Binary: "kubectl-tunnel_gateway"}
	extension, encode := "tar.gz", tarball
	if system == "windows" {
		p.Binary += ".exe"
		extension, encode = "zip", zipped
	}
	var files []file
	for _, source := range []struct {
		path string
		mode os.FileMode
	}{{r.license, 0o644}, {filepath.Join(folder, p.Binary), 0o755}} {
		content, err := os.ReadFile(source.path)
		if err != nil {
			return p, "", err
		}
		files = append(files, file{filepath.Base(source.path), source.mode, content})
	}
	content, err := encode(files, r.modified)
	if err != nil {
		return p, "", err
	}
	archive := fmt.Sprintf("kubectl-tunnel_gateway_%s_%s_%s.%s", r.TagName, system, architecture, extension)
	sum := sha256.Sum256(content)
	p.URI, p.SHA256 = strings.TrimSuffix(r.url, "/")+"/"+archive, hex.EncodeToString(sum[:])
	return p, archive, os.WriteFile(filepath.Join(r.directory, archive), content, 0o644)
}

// fill returns the manifest.
func (r *release) fill(path string) ([]byte, error) {
	t, err := template.ParseFiles(path)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	if err := t.Option("missingkey=error").Execute(&b, r); err != nil {
		return nil, err
	}
	return []byte(b.String()), nil
}
