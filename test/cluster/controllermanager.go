package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
)

const (
	// controllerManagerPoll is how often Start checks whether the controllers work.
	controllerManagerPoll = 50 * time.Millisecond
)

// disabledControllers are the Kubernetes controllers that do not run.
var disabledControllers = []string{
	// The tests' Nodes do not renew their leases, so these controllers would evict their
	// Pods.
	"node-lifecycle-controller", "taint-eviction-controller", "device-taint-eviction-controller",
	// It requires Pod address ranges for each Node.
	"node-ipam-controller",
	// It deletes Pods whose Node does not exist.
	"pod-garbage-collector-controller",
	// They search for plugins in the machine's directories.
	"persistentvolume-binder-controller", "persistentvolume-attach-detach-controller",
	"persistentvolume-expander-controller",
}

// controllerManager is a running kube-controller-manager.
type controllerManager struct {
	process *exec.Cmd
	ended   chan struct{} // closed when the process has ended
}

// startControllerManager starts the controllers, which connect to the environment's API
// server. They write to the same output as the API server.
func startControllerManager(environment *envtest.Environment, w *workspace) (*controllerManager, error) {
	flags, err := controllerFlags(environment, w)
	if err != nil {
		return nil, err
	}
	server := environment.ControlPlane.APIServer
	process := exec.Command(w.programs[binaries.ControllerManager], flags...)
	process.Stdout, process.Stderr = server.Out, server.Err
	return startProcess(process)
}

// startProcess starts the process in its own process group, as envtest does.
func startProcess(process *exec.Cmd) (*controllerManager, error) {
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := process.Start(); err != nil {
		return nil, err
	}
	c := &controllerManager{process: process, ended: make(chan struct{})}
	go func() {
		_ = process.Wait() // ProcessState has the result
		close(c.ended)
	}()
	return c, nil
}

// exitError returns an error if the process has ended. The result is valid only
// before stop.
func (c *controllerManager) exitError() error {
	select {
	case <-c.ended:
		return fmt.Errorf("ended unexpectedly: %s", c.process.ProcessState)
	default:
		return nil
	}
}

// controllerFlags returns the kube-controller-manager flags and writes the files that
// they refer to.
func controllerFlags(environment *envtest.Environment, w *workspace) ([]string, error) {
	server := environment.ControlPlane.APIServer
	user, err := environment.AddUser(envtest.User{Name: "system:" + binaries.ControllerManager}, &rest.Config{})
	if err != nil {
		return nil, err
	}
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		return nil, err
	}
	kubeconfigFile := filepath.Join(w.certificates(), binaries.ControllerManager+".kubeconfig")
	caFile := filepath.Join(w.certificates(), "apiserver-ca.crt")
	err = errors.Join(os.WriteFile(kubeconfigFile, kubeconfig, 0o600), os.WriteFile(caFile, server.CA, 0o600))
	return []string{
		"--kubeconfig=" + kubeconfigFile,
		"--controllers=*,-" + strings.Join(disabledControllers, ",-"),
		"--use-service-account-credentials=true",
		// envtest's file name for the key with which the API server signs tokens.
		"--service-account-private-key-file=" + filepath.Join(w.certificates(), "sa-signer.key"),
		"--root-ca-file=" + caFile,
		"--leader-elect=false",
		"--secure-port=0",
		// The limits that envtest's client has. Only the tests use the API server.
		"--kube-api-qps=1000", "--kube-api-burst=2000",
	}, err
}

// wait waits until the controllers work: the namespace "default" has its
// ServiceAccount, which is required to create Pods.
func (c *controllerManager) wait(ctx context.Context, admin *rest.Config) error {
	kube, err := client.New(admin, client.Options{})
	if err != nil {
		return err
	}
	key := client.ObjectKey{Namespace: "default", Name: "default"}
	err = wait.PollUntilContextTimeout(ctx, controllerManagerPoll, maxWait, true, func(ctx context.Context) (bool, error) {
		if err := c.exitError(); err != nil {
			return false, err
		}
		err := kube.Get(ctx, key, &corev1.ServiceAccount{})
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("wait for the first ServiceAccount: %w", err)
	}
	return nil
}

// stop stops the controllers and waits for them. It returns an error if they ended
// before, because that may explain why the caller failed.
func (c *controllerManager) stop() error {
	if err := c.exitError(); err != nil {
		return err
	}
	if err := c.process.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-c.ended:
		return nil
	case <-time.After(maxWait):
		err := fmt.Errorf("killed because it did not stop within %s", maxWait)
		err = errors.Join(err, c.process.Process.Kill())
		<-c.ended
		return err
	}
}
