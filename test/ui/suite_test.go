package ui

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
)

const (
	root    = "../.."
	samples = root + "/config/samples"
	// timeout is the timeout for what takes a second on an idle machine.
	timeout = 30 * time.Second
	// rebound is a name that an attacker's DNS server resolves to the loopback address.
	rebound = "rebound.example.com"
)

// Set by TestMain.
var (
	programs string          // the directory with the product and the demo
	browser  context.Context // one Chromium for all tests
	axe      string          // axe.min.js
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	log.SetLogger(logr.Discard())
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "tunnel-gateway-ui-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // temporary files
	programs = dir
	if err := build(ctx, "./cmd/tunnel-gateway", "./test/demo"); err != nil {
		return 0, err
	}
	unpacked, err := binaries.Axe.Unpack(ctx, os.Stderr)
	if err != nil {
		return 0, err
	}
	content, err := os.ReadFile(filepath.Join(unpacked, "axe.min.js"))
	if err != nil {
		return 0, err
	}
	axe = string(content)
	stop, err := startBrowser(ctx, dir)
	if err != nil {
		return 0, err
	}
	defer stop()
	defer stopSharedDemo()
	// Most tests wait for the demo or the browser, so more than one test per CPU runs at a time.
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// build builds programs from the main module into the directory programs.
func build(ctx context.Context, packages ...string) error {
	return buildTo(ctx, programs+string(filepath.Separator), packages...)
}

func buildTo(ctx context.Context, dir string, packages ...string) error {
	arguments := append([]string{"build", "-C", root, "-trimpath", "-buildvcs=false", "-o", dir}, packages...)
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", strings.Join(packages, " "), err, output)
	}
	return nil
}

// startBrowser starts Chromium with the same fonts on every machine.
func startBrowser(ctx context.Context, dir string) (stop func(), err error) {
	path, err := findBrowser()
	if err != nil {
		return nil, err
	}
	fonts, err := filepath.Abs("testdata/fonts.conf")
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(filepath.Join(dir, "browser")),
		chromedp.Env("FONTCONFIG_FILE="+fonts, "LANG=C.UTF-8", "TZ=UTC"),
		chromedp.Flag("host-resolver-rules", "MAP "+rebound+" 127.0.0.1"),
		chromedp.Flag("hide-scrollbars", true), chromedp.Flag("font-render-hinting", "none"),
		chromedp.Flag("lang", "en-US"),
		chromedp.WSURLReadTimeout(time.Minute),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses its sandbox to root
	}
	allocator, stopAllocator := chromedp.NewExecAllocator(ctx, options...)
	started, _ := chromedp.NewContext(allocator) // stop cancels it, and waits until Chromium has ended
	if err := chromedp.Do(started); err != nil {
		stopAllocator()
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	browser = started
	return func() { _ = chromedp.Cancel(started); stopAllocator() }, nil
}

func findBrowser() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("chromium is not in the PATH; .ci/install-browser installs it on Debian")
}
