package netns

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// routes are the addresses that belong to the namespace: package node's addresses for
// Pods, and package cluster's addresses for Services.
var routes = []string{"10.244.0.0/16", "10.96.0.0/12"}

// reportFile is the file descriptor to which the process in the namespace writes that it
// has entered the namespace, or why it could not.
const reportFile = 3

// A process reports entered when it has entered the namespace.
const entered = "entered"

// runInNamespace runs this program in a network namespace and returns its exit status. It
// returns an error if the program cannot enter a namespace.
func runInNamespace() (int, error) {
	// The kernel kills the child process when this thread ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var errs []error
	for _, attributes := range namespaces() {
		status, err := runWith(attributes)
		if err == nil {
			return status, nil
		}
		errs = append(errs, err)
	}
	return 0, errors.Join(errs...)
}

// namespaces returns the process attributes to try. A network namespace needs root, or a
// user namespace, in which the user keeps its ID and may configure the network.
func namespaces() []*syscall.SysProcAttr {
	user := &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
		// CAP_SYS_ADMIN is for Isolate.
		AmbientCaps: []uintptr{unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_ADMIN},
	}
	if os.Geteuid() != 0 {
		return []*syscall.SysProcAttr{user}
	}
	return []*syscall.SysProcAttr{{Cloneflags: syscall.CLONE_NEWNET}, user}
}

func runWith(attributes *syscall.SysProcAttr) (int, error) {
	program, err := os.Executable()
	if err != nil {
		return 0, err
	}
	report, reportInput, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer report.Close()                             //nolint:errcheck // it is only read
	command := exec.Command(program, os.Args[1:]...) // #nosec G204 G702 -- this program
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = append(os.Environ(), variable+"="+entering)
	command.ExtraFiles = []*os.File{reportInput}
	// In its own process group, the child process gets each signal from a terminal once.
	attributes.Setpgid, attributes.Pdeathsig = true, syscall.SIGKILL
	command.SysProcAttr = attributes
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP)
	defer signal.Stop(signals)
	err = command.Start()
	_ = reportInput.Close() // the child process has its own copy
	if err != nil {
		return 0, fmt.Errorf("create a network namespace: %w", err)
	}
	text, err := io.ReadAll(report)
	if err == nil && string(text) != entered {
		err = fmt.Errorf("set up the network namespace: %s", text)
	}
	if err != nil {
		_ = command.Wait() // the child process ends
		return 0, err
	}
	return wait(command, signals), nil
}

// wait forwards the signals until the command ends, and returns its exit status. As in a
// shell, the status for a signal is 128 plus its number.
func wait(command *exec.Cmd, signals <-chan os.Signal) int {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = command.Wait() // ProcessState has the result
	}()
	for {
		select {
		case s := <-signals:
			_ = command.Process.Signal(s)
		case <-ended:
			status := command.ProcessState.Sys().(syscall.WaitStatus)
			if status.Signaled() {
				return 128 + int(status.Signal())
			}
			return status.ExitStatus()
		}
	}
}

// enter sets up this process's namespace, and reports to the parent process whether that
// succeeded.
func enter() bool {
	report := os.NewFile(reportFile, "report")
	err := setUp()
	text := entered
	if err != nil {
		text = err.Error()
	}
	setState(inside)
	_, writeErr := io.WriteString(report, text)
	return errors.Join(err, writeErr, report.Close()) == nil
}

// Isolate wires the calling goroutine to its thread, and moves the thread to a new network
// namespace with the addresses of [Run]'s. Sockets that the goroutine then opens, and
// processes that it starts, belong to the new namespace. It needs root, or a namespace of Run.
func Isolate() error {
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("create a network namespace: %w", err)
	}
	return setUp()
}

// setUp starts the loopback interface and adds the routes.
func setUp() error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find the loopback interface: %w", err)
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return fmt.Errorf("start the loopback interface: %w", err)
	}
	for _, route := range routes {
		_, network, err := net.ParseCIDR(route)
		if err != nil {
			return err
		}
		err = netlink.RouteAdd(&netlink.Route{
			LinkIndex: loopback.Attrs().Index, Dst: network,
			Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_LOCAL, Scope: netlink.SCOPE_HOST,
		})
		if err != nil {
			return fmt.Errorf("add a route to %s: %w", route, err)
		}
	}
	return nil
}
