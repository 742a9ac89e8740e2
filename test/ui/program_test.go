package ui

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// program is a running program, whose standard output is read line by line.
type program struct {
	command *exec.Cmd
	input   io.WriteCloser
	lines   chan string // closed when the output ends
	errors  safeBuffer
	stop    func()
}

// start starts a program from the directory programs and stops it when the test ends.
func start(t testing.TB, environment []string, name string, arguments ...string) *program {
	t.Helper()
	p, err := startProgram(environment, name, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	return p
}

func startProgram(environment []string, name string, arguments ...string) (*program, error) {
	p := &program{lines: make(chan string, 10_000)}
	p.command = exec.Command(filepath.Join(programs, name), arguments...) // #nosec G702 -- the tests choose the arguments
	p.command.Dir = root
	p.command.Env = append(os.Environ(), environment...)
	p.command.Stderr = &p.errors
	output, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.input, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.lines)
		for scanner := bufio.NewScanner(output); scanner.Scan(); {
			p.lines <- scanner.Text()
		}
	}()
	p.stop = sync.OnceFunc(func() {
		_ = p.command.Process.Signal(syscall.SIGTERM)
		limit := time.AfterFunc(timeout, func() { _ = p.command.Process.Kill() })
		defer limit.Stop()
		for ok := true; ok; {
			_, ok = <-p.lines // until the output ends
		}
		_ = p.command.Wait()
	})
	return p, nil
}

// await returns the first submatch in the next lines that the program prints, in time.
func (p *program) await(pattern string, limit time.Duration) (string, error) {
	expression, deadline := regexp.MustCompile(pattern), time.After(limit)
	var seen []string
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				return "", fmt.Errorf("%s ended without %q:\n%s\n%s", p.command.Path, pattern, strings.Join(seen, "\n"), p.errors.String())
			}
			if found := expression.FindStringSubmatch(line); found != nil {
				return found[1], nil
			}
			seen = append(seen, line)
		case <-deadline:
			return "", fmt.Errorf("%s prints no %q:\n%s\n%s", p.command.Path, pattern, strings.Join(seen, "\n"), p.errors.String())
		}
	}
}

// page is a running `tunnel-gateway ui`.
type page struct {
	*program
	link string // the first one
	site string // "http://127.0.0.1:<port>"
}

const linkPattern = `(http://127\.0\.0\.1:[0-9]+/\?token=\S+)`

// serve starts `tunnel-gateway ui`, as a user does.
func serve(t testing.TB, environment []string, arguments ...string) *page {
	t.Helper()
	p := &page{program: start(t, environment, "tunnel-gateway", append([]string{"ui"}, arguments...)...)}
	link, err := p.await(linkPattern, timeout)
	if err != nil {
		t.Fatal(err)
	}
	p.link = link
	p.site, _, _ = strings.Cut(p.link, "/?")
	return p
}

// output runs a program and returns its standard output.
func output(t testing.TB, environment []string, name string, arguments ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(programs, name), arguments...)
	command.Dir, command.Env = root, append(os.Environ(), environment...)
	var problems bytes.Buffer
	command.Stderr = &problems
	out, err := command.Output()
	// `plan` exits with another status if it reports a problem.
	if len(out) == 0 {
		t.Fatalf("%s: %v\n%s", command, err, &problems)
	}
	return out
}

// safeBuffer is a buffer that one goroutine writes while another one reads.
type safeBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
