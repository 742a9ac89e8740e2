package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"time"
)

// file is a file in an archive.
type file struct {
	name    string
	mode    os.FileMode
	content []byte
}

// tarball returns a .tar.gz archive. It has no names of users, and no time except modified.
func tarball(files []file, modified time.Time) ([]byte, error) {
	var b bytes.Buffer
	compressed := gzip.NewWriter(&b)
	w := tar.NewWriter(compressed)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: int64(f.mode), Size: int64(len(f.content)), ModTime: modified, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := errors.Join(w.Close(), compressed.Close())
	return b.Bytes(), err
}

// zipped returns a .zip archive.
func zipped(files []file, modified time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: modified}
		header.SetMode(f.mode)
		entry, err := w.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := io.Copy(entry, bytes.NewReader(f.content)); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}
