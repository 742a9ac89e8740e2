// Package childproc kills child processes and removes their files when the parent process
// ends for any reason. A signal handler is not enough: a panic or the timeout in `go
// test` ends a process without a signal. The package works on Unix only.
//
// The package does not start or stop the programs while the parent process runs.
package childproc

import (
	_ "embed"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

//go:embed childproc.sh
var script []byte

// Group is a group of programs that end when this process ends, even if it is killed. The
// group and its programs keep their files in a temporary directory. [Group.Wrap] is not
// safe for concurrent use.
type Group struct {
	dir   string
	count int      // programs
	pipe  *os.File // the pipe that the programs watch; the kernel closes it when this process ends
}

// New returns a group without programs. Its temporary directory's name contains name. The
// caller calls [Group.Close].
func New(name string) (_ *Group, err error) {
	dir, err := os.MkdirTemp("", "tunnel-gateway-"+name+"-")
	if err != nil {
		return nil, err
	}
	g := &Group{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.Close())
		}
	}()
	if err := os.Mkdir(g.Files(), 0o700); err != nil {
		return nil, err
	}
	pipe := filepath.Join(dir, "alive")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		return nil, &os.PathError{Op: "mkfifo", Path: pipe, Err: err}
	}
	// A pipe that is opened only for writing blocks until it has a reader.
	g.pipe, err = os.OpenFile(pipe, os.O_RDWR, 0)
	return g, err
}

// Files returns the directory for files that are removed together with the
// programs.
func (g *Group) Files() string { return filepath.Join(g.dir, "files") }

// Wrap adds the program at the absolute path to the group. It returns the path
// that the caller runs instead, with the same arguments. The started process is
// the program itself; it has a child process, a shell that watches this process.
// The shell belongs to the program's process group. It keeps running after the
// program until the group is closed or the process group is killed.
func (g *Group) Wrap(path string) (string, error) {
	g.count++
	dir := filepath.Join(g.dir, "programs", strconv.Itoa(g.count))
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o700); err != nil {
		return "", err
	}
	name := filepath.Base(path)
	if err := os.Symlink(path, filepath.Join(dir, "bin", name)); err != nil {
		return "", err
	}
	wrapper := filepath.Join(dir, name)
	return wrapper, WriteProgram(wrapper, script)
}

// WriteProgram writes an executable file that can be run as soon as the function
// has returned. [os.WriteFile] does not guarantee that: if another goroutine forks
// a process meanwhile, the process inherits the open file, and running the file
// fails with ETXTBSY until that process executes its own program
// (golang.org/issue/22315).
func WriteProgram(path string, content []byte) error {
	syscall.ForkLock.RLock() // a fork takes the write lock
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, content, 0o700) // #nosec G306 -- the owner must be able to run it
}

// Close kills the programs that still run and removes the group's directory.
func (g *Group) Close() error {
	var err error
	if g.pipe != nil {
		err = g.pipe.Close()
	}
	return errors.Join(err, os.RemoveAll(g.dir))
}
