package controllerproc

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/childproc"
)

// stopTimeout is how long a program may take to stop gracefully.
const stopTimeout = 20 * time.Second

// Process is a running program. Its methods are safe for concurrent use and may be
// called more than once.
type Process struct {
	command *exec.Cmd
	killed  atomic.Bool
	exited  chan struct{}
	err     error // how the program ended; valid after exited is closed
}

// Run starts the command in its own process group. The command must not have been
// started. The caller stops it. If the calling process ends before that, for any
// reason, the program is killed.
func Run(command *exec.Cmd) (*Process, error) {
	group, err := wrap(command)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", command.Args[0], err)
	}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return nil, errors.Join(err, group.Close())
	}
	p := &Process{command: command, exited: make(chan struct{})}
	go func() {
		defer close(p.exited)
		err := exitError(command.Wait())
		// The shell that watches this process still runs in the process group. Later,
		// it would kill any process that has reused the program's process ID.
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		p.err = errors.Join(err, group.Close())
	}()
	return p, nil
}

// wrap makes the command run its program in a [childproc.Group], which it returns.
func wrap(command *exec.Cmd) (*childproc.Group, error) {
	path, err := exec.LookPath(command.Path) // the wrapper would report a missing program too late
	if err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	group, err := childproc.New(filepath.Base(path))
	if err != nil {
		return nil, err
	}
	if command.Path, err = group.Wrap(path); err != nil {
		return nil, errors.Join(err, group.Close())
	}
	return group, nil
}

// exitError returns err unless SIGTERM has ended the program, which is not an
// error: a program that is stopped while it starts does not handle the signal yet.
func exitError(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGTERM {
		return nil
	}
	return err
}

// Exited returns a channel that is closed when the program has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// exitInterrupted is the controller's exit status for a signal while it starts.
const exitInterrupted = 130

// Stop stops the program with SIGTERM, as a rollout does, and waits for it. It
// returns an error if it has to kill the program, or if the program exits or has
// exited with a status other than 0, with which the race detector reports a race.
// It returns no error after [Process.Kill], and for a program that it interrupts
// while the program starts.
func (p *Process) Stop() error {
	_ = p.command.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.exited:
	case <-time.After(stopTimeout):
		p.Kill()
		return fmt.Errorf("%s was killed because it did not stop within %s", p.command.Args[0], stopTimeout)
	}
	var exit *exec.ExitError
	isInterrupted := errors.As(p.err, &exit) && exit.ExitCode() == exitInterrupted
	if p.err != nil && !isInterrupted && !p.killed.Load() {
		return fmt.Errorf("%s: %w", p.command.Args[0], p.err)
	}
	return nil
}

// Kill kills the program and waits for it.
func (p *Process) Kill() {
	p.killed.Store(true)
	_ = p.command.Process.Kill() // it may have ended
	<-p.exited
}
