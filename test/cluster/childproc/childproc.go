// Package childproc ties programs to the life of the process that runs them:
// should that process end, whatever the reason, they are killed and their files
// removed. Handling signals would not do: a panic or the time limit of `go test`
// ends a process without one. It runs on Unix only.
//
// What the programs are, and how they are started and stopped while their user
// lives, does not belong here.
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

// Group is a directory of programs that end when this process ends, even if
// it is killed, together with their files. Tie must not be called twice at the
// same time.
type Group struct {
	dir   string
	count int      // how many programs there are
	pipe  *os.File // the pipe that the programs watch; closed by our death
}

// New makes a tether without programs. The name tells its directory apart from
// others in the directory of temporary files. The caller cuts it in the end.
func New(name string) (_ *Group, err error) {
	dir, err := os.MkdirTemp("", "tunnel-gateway-"+name+"-")
	if err != nil {
		return nil, err
	}
	t := &Group{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Close())
		}
	}()
	if err := os.Mkdir(t.Files(), 0o700); err != nil {
		return nil, err
	}
	pipe := filepath.Join(dir, "alive")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		return nil, &os.PathError{Op: "mkfifo", Path: pipe, Err: err}
	}
	// Opening for writing alone would wait for a reader.
	t.pipe, err = os.OpenFile(pipe, os.O_RDWR, 0)
	return t, err
}

// Files is the directory for whatever has to go with the programs.
func (t *Group) Files() string { return filepath.Join(t.dir, "files") }

// Wrap ties the program at the absolute path, and returns the path to run
// instead, with the same arguments. The process that comes of it is the program
// itself, beside a shell that watches this process. The shell belongs to the
// program's process group, and outlives the program until the tether is cut,
// unless the group is killed.
func (t *Group) Wrap(path string) (string, error) {
	t.count++
	dir := filepath.Join(t.dir, "tied", strconv.Itoa(t.count))
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o700); err != nil {
		return "", err
	}
	name := filepath.Base(path)
	if err := os.Symlink(path, filepath.Join(dir, "bin", name)); err != nil {
		return "", err
	}
	tied := filepath.Join(dir, name)
	return tied, WriteProgram(tied, script)
}

// WriteProgram writes an executable file that can be run as soon as the function
// has returned. [os.WriteFile] does not guarantee that: a process that another
// goroutine forks meanwhile inherits the open file, and running the file fails
// with ETXTBSY until that process executes its own program (golang.org/issue/22315).
func WriteProgram(path string, content []byte) error {
	syscall.ForkLock.RLock() // a fork takes the write lock
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, content, 0o700) // #nosec G306 -- the owner runs it
}

// Close ends what still runs and removes the directory.
func (t *Group) Close() error {
	var err error
	if t.pipe != nil {
		err = t.pipe.Close()
	}
	return errors.Join(err, os.RemoveAll(t.dir))
}
