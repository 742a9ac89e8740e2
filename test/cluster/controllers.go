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
	// controllersTimeout is how long the controllers may take to start, and to
	// end; envtest gives the API server as much.
	controllersTimeout = 20 * time.Second
	// controllersPoll is how often is looked whether the controllers work.
	controllersPoll = 50 * time.Millisecond
)

// withoutControllers are the controllers that do not run.
var withoutControllers = []string{
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

// controllers is a running kube-controller-manager.
type controllers struct {
	process *exec.Cmd
	ended   chan struct{} // closed when the process has ended
}

// startControllers starts the controllers against the API server that runs in
// environment. What they print goes where the API server's output goes.
func startControllers(environment *envtest.Environment, w *workspace) (*controllers, error) {
	flags, err := controllerFlags(environment, w)
	if err != nil {
		return nil, err
	}
	server := environment.ControlPlane.APIServer
	process := exec.Command(w.programs[controllersName], flags...)
	process.Stdout, process.Stderr = server.Out, server.Err
	return watched(process)
}

// watched starts the process, in a group of its own as envtest does.
func watched(process *exec.Cmd) (*controllers, error) {
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := process.Start(); err != nil {
		return nil, err
	}
	c := &controllers{process: process, ended: make(chan struct{})}
	go func() {
		_ = process.Wait() // its state says as much
		close(c.ended)
	}()
	return c, nil
}

// failure is the error of a process that has ended though nobody told it to.
func (c *controllers) failure() error {
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
	user, err := environment.AddUser(envtest.User{Name: "system:" + controllersName}, &rest.Config{})
	if err != nil {
		return nil, err
	}
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		return nil, err
	}
	kubeconfigFile := filepath.Join(w.certificates(), controllersName+".kubeconfig")
	caFile := filepath.Join(w.certificates(), "apiserver-ca.crt")
	err = errors.Join(os.WriteFile(kubeconfigFile, kubeconfig, 0o600), os.WriteFile(caFile, server.CA, 0o600))
	return []string{
		"--kubeconfig=" + kubeconfigFile,
		"--controllers=*,-" + strings.Join(withoutControllers, ",-"),
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
func (c *controllers) wait(ctx context.Context, admin *rest.Config) error {
	kube, err := client.New(admin, client.Options{})
	if err != nil {
		return err
	}
	key := client.ObjectKey{Namespace: "default", Name: "default"}
	err = wait.PollUntilContextTimeout(ctx, controllersPoll, controllersTimeout, true, func(ctx context.Context) (bool, error) {
		if err := c.failure(); err != nil {
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
func (c *controllers) stop() error {
	if err := c.failure(); err != nil {
		return err
	}
	if err := c.process.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-c.ended:
		return nil
	case <-time.After(controllersTimeout):
		err := fmt.Errorf("it was killed, since it did not end in %s", controllersTimeout)
		err = errors.Join(err, c.process.Process.Kill())
		<-c.ended
		return err
	}
}
