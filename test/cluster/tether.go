package cluster

import (
	_ "embed"
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

//go:embed tether.sh
var tetherScript []byte

// tether is a directory of programs that end when this process ends, even if
// it is killed, together with their files. Handling signals would not do: a
// panic or the time limit of `go test` ends a process without one.
type tether struct {
	dir   string
	alive *os.File // the pipe that the programs watch; closed by our death
}

// newTether ties the programs of the control plane in the directory binaries.
func newTether(binaries string) (_ *tether, err error) {
	dir, err := os.MkdirTemp("", "tunnel-gateway-control-plane-")
	if err != nil {
		return nil, err
	}
	t := &tether{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.cut())
		}
	}()
	for _, path := range []string{t.certificates(), t.data()} {
		if err := os.Mkdir(path, 0o700); err != nil {
			return nil, err
		}
	}
	if err := os.Symlink(binaries, filepath.Join(dir, "bin")); err != nil {
		return nil, err
	}
	for _, c := range commands {
		if err := os.WriteFile(t.program(c.name), tetherScript, 0o700); err != nil {
			return nil, err
		}
	}
	pipe := filepath.Join(dir, "alive")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		return nil, &os.PathError{Op: "mkfifo", Path: pipe, Err: err}
	}
	// Opening for writing alone would wait for a reader.
	t.alive, err = os.OpenFile(pipe, os.O_RDWR, 0)
	return t, err
}

func (t *tether) program(name string) string { return filepath.Join(t.dir, name) }
func (t *tether) certificates() string       { return filepath.Join(t.dir, "certificates") }
func (t *tether) data() string               { return filepath.Join(t.dir, "data") }

// cut ends what still runs and removes the directory.
func (t *tether) cut() error {
	var err error
	if t.alive != nil {
		err = t.alive.Close()
	}
	return errors.Join(err, os.RemoveAll(t.dir))
}
