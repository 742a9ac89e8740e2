package cluster

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/childproc"
)

// workspace contains one control plane's programs and files. When this process ends, the
// programs are killed and the files are removed.
type workspace struct {
	children *childproc.Group
	programs map[string]string // paths to run, by name
}

// newWorkspace returns a workspace with the programs at the paths, by name.
func newWorkspace(paths map[string]string) (_ *workspace, err error) {
	children, err := childproc.New("control-plane")
	if err != nil {
		return nil, err
	}
	w := &workspace{children: children, programs: map[string]string{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, children.Close())
		}
	}()
	for _, path := range []string{w.certificates(), w.data()} {
		if err := os.Mkdir(path, 0o700); err != nil {
			return nil, err
		}
	}
	for name, path := range paths {
		if w.programs[name], err = children.Wrap(path); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *workspace) certificates() string { return filepath.Join(w.children.Files(), "certificates") }
func (w *workspace) data() string         { return filepath.Join(w.children.Files(), "data") }
