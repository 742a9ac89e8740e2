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
)

const (
	// controllerManagerTimeout is how long the controllers may take to start, and to
	// end; envtest gives the API server as much.
	controllerManagerTimeout = 20 * time.Second
	// controllerManagerPoll is how often is looked whether the controllers work.
	controllerManagerPoll = 50 * time.Millisecond
)

// disabledControllers are the controllers that do not run.
var disabledControllers = []string{
	// Nobody renews a Node's lease here: its Pods would be evicted.
	"node-lifecycle-controller", "taint-eviction-controller", "device-taint-eviction-controller",
	// It gives Nodes ranges of Pod addresses, and is told of none.
	"node-ipam-controller",
	// It deletes Pods whose Node does not exist.
	"pod-garbage-collector-controller",
	// They look for plugins in directories of the machine.
	"persistentvolume-binder-controller", "persistentvolume-attach-detach-controller",
	"persistentvolume-expander-controller",
}

// controllerManager is a running kube-controller-manager.
type controllerManager struct {
	process *exec.Cmd
	ended   chan struct{} // closed when the process has ended
}

// startControllerManager starts the controllers against the API server that runs in
// environment. What they print goes where the API server's output goes.
func startControllerManager(environment *envtest.Environment, w *workspace) (*controllerManager, error) {
	flags, err := controllerFlags(environment, w)
	if err != nil {
		return nil, err
	}
	server := environment.ControlPlane.APIServer
	process := exec.Command(w.programs[controllerManagerName], flags...)
	process.Stdout, process.Stderr = server.Out, server.Err
	return startProcess(process)
}

// startProcess starts the process, in a group of its own as envtest does.
func startProcess(process *exec.Cmd) (*controllerManager, error) {
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := process.Start(); err != nil {
		return nil, err
	}
	c := &controllerManager{process: process, ended: make(chan struct{})}
	go func() {
		_ = process.Wait() // its state says as much
		close(c.ended)
	}()
	return c, nil
}

// exitError is the error of a process that has ended though nobody told it to.
func (c *controllerManager) exitError() error {
	select {
	case <-c.ended:
		return fmt.Errorf("it has ended by itself: %s", c.process.ProcessState)
	default:
		return nil
	}
}

// controllerFlags writes the files that the flags name, and returns the flags.
func controllerFlags(environment *envtest.Environment, w *workspace) ([]string, error) {
	server := environment.ControlPlane.APIServer
	user, err := environment.AddUser(envtest.User{Name: "system:" + controllerManagerName}, &rest.Config{})
	if err != nil {
		return nil, err
	}
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		return nil, err
	}
	kubeconfigFile := filepath.Join(w.certificates(), controllerManagerName+".kubeconfig")
	caFile := filepath.Join(w.certificates(), "apiserver-ca.crt")
	err = errors.Join(os.WriteFile(kubeconfigFile, kubeconfig, 0o600), os.WriteFile(caFile, server.CA, 0o600))
	return []string{
		"--kubeconfig=" + kubeconfigFile,
		"--controllers=*,-" + strings.Join(disabledControllers, ",-"),
		"--use-service-account-credentials=true",
		// envtest's name for the key with which its API server signs tokens.
		"--service-account-private-key-file=" + filepath.Join(w.certificates(), "sa-signer.key"),
		"--root-ca-file=" + caFile,
		"--leader-elect=false",
		"--secure-port=0",
		// As fast as envtest's own client: the API server serves nobody else.
		"--kube-api-qps=1000", "--kube-api-burst=2000",
	}, err
}

// wait returns once the controllers work: the namespace "default" has its
// ServiceAccount, without which no Pod can be made in it.
func (c *controllerManager) wait(ctx context.Context, admin *rest.Config) error {
	kube, err := client.New(admin, client.Options{})
	if err != nil {
		return err
	}
	key := client.ObjectKey{Namespace: "default", Name: "default"}
	err = wait.PollUntilContextTimeout(ctx, controllerManagerPoll, controllerManagerTimeout, true, func(ctx context.Context) (bool, error) {
		if err := c.exitError(); err != nil {
			return false, err
		}
		err := kube.Get(ctx, key, &corev1.ServiceAccount{})
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("waiting for the first ServiceAccount: %w", err)
	}
	return nil
}

// stop ends the controllers and waits for them. It tells of an end of their own
// before that: it may explain what the caller has seen.
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
	case <-time.After(controllerManagerTimeout):
		err := fmt.Errorf("it was killed, since it did not end in %s", controllerManagerTimeout)
		err = errors.Join(err, c.process.Process.Kill())
		<-c.ended
		return err
	}
}
