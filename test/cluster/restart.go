package cluster

import (
	"errors"
	"fmt"
	"os"

	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
)

// Restart stops the API server, and starts it again with the same address and certificates.
// Watches that continue afterwards can have expired.
func (c *Cluster) Restart() error {
	server := c.environment.ControlPlane.APIServer
	if err := server.Stop(); err != nil {
		return fmt.Errorf("stop the API server: %w", err)
	}
	if err := server.Start(); err != nil {
		return fmt.Errorf("start the API server again: %w", err)
	}
	return nil
}

// Backup copies etcd's data to the directory, which must not exist. The API server and etcd
// stop meanwhile, so that the copy is consistent.
func (c *Cluster) Backup(dir string) error {
	return c.offline(func(data string) error { return os.CopyFS(dir, os.DirFS(data)) })
}

// Restore replaces etcd's data with the copy that [Cluster.Backup] made. As after the restore
// of a snapshot without a raised revision, resource versions repeat, and watches miss the changes
// that have them. So Restore also restarts the Kubernetes controllers, as Kubernetes recommends.
func (c *Cluster) Restore(dir string) error {
	if c.controllerManager == nil {
		return c.replaceData(dir)
	}
	if err := c.controllerManager.stop(); err != nil {
		return fmt.Errorf("stop %s: %w", binaries.ControllerManager, err)
	}
	if err := c.replaceData(dir); err != nil {
		return err
	}
	var err error
	if c.controllerManager, err = startControllerManager(c.environment, c.workspace); err != nil {
		return fmt.Errorf("start %s again: %w", binaries.ControllerManager, err)
	}
	return nil
}

// replaceData replaces etcd's data with that in the directory.
func (c *Cluster) replaceData(dir string) error {
	return c.offline(func(data string) error {
		return errors.Join(os.RemoveAll(data), os.CopyFS(data, os.DirFS(dir)), os.Chmod(data, 0o700)) // #nosec G302 -- etcd requires it
	})
}

// offline calls the function with etcd's directory while the API server and etcd do not run.
func (c *Cluster) offline(change func(data string) error) error {
	server, etcd := c.environment.ControlPlane.APIServer, c.environment.ControlPlane.Etcd
	if err := errors.Join(server.Stop(), etcd.Stop()); err != nil {
		return fmt.Errorf("stop the API server and etcd: %w", err)
	}
	err := change(c.workspace.data())
	if err := errors.Join(err, etcd.Start(), server.Start()); err != nil {
		return fmt.Errorf("start etcd and the API server again: %w", err)
	}
	return nil
}
