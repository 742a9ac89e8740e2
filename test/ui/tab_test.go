package ui

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// reportViolations reports what the Content-Security-Policy prevents as an error.
const reportViolations = `addEventListener("securitypolicyviolation", (e) => console.error("Content-Security-Policy:", e.violatedDirective, e.blockedURI))`

// tab is a tab in the browser. Errors and warnings on its console fail the test.
type tab struct {
	t   testing.TB
	ctx context.Context

	mu       sync.Mutex
	problems []string
	allowed  []string
}

// newTab opens a tab in a new browser profile, without other tabs' sessions.
func newTab(t testing.TB) *tab { return openTab(browser, t, chromedp.WithNewBrowserContext()) }

// another opens a tab with the same sessions.
func (b *tab) another() *tab {
	b.t.Helper()
	return openTab(b.ctx, b.t)
}

func openTab(parent context.Context, t testing.TB, options ...chromedp.ContextOption) *tab {
	t.Helper()
	b := &tab{t: t}
	var cancel context.CancelFunc
	b.ctx, cancel = chromedp.NewContext(parent, append(options, chromedp.WithListener(b.record))...)
	t.Cleanup(func() {
		b.check()
		cancel()
	})
	// The first call creates the tab, which lives as long as its context.
	if err := chromedp.Do(b.ctx); err != nil {
		t.Fatal(err)
	}
	call(b, log.Enable, cdp.Empty{})
	call(b, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: reportViolations})
	b.size(1280, 900)
	return b
}

// record keeps what the console shows as an error or a warning.
func (b *tab) record(event any) {
	var problem string
	switch event := event.(type) {
	case *runtime.EventExceptionThrown:
		problem = event.ExceptionDetails.Text
		if exception := event.ExceptionDetails.Exception; exception != nil {
			problem += " " + exception.Description
		}
	case *runtime.EventConsoleAPICalled:
		if event.Type != runtime.ConsoleAPICalledTypeError && event.Type != runtime.ConsoleAPICalledTypeWarning {
			return
		}
		for _, argument := range event.Args {
			problem += " " + string(argument.Value) + argument.Description
		}
	case *log.EventEntryAdded:
		if event.Entry.Level != log.EntryLevelError && event.Entry.Level != log.EntryLevelWarning {
			return
		}
		problem = event.Entry.Text + " " + event.Entry.URL
	case *cdppage.EventJavascriptDialogOpening:
		problem = "a dialog: " + event.Message
	default:
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = append(b.problems, problem)
}

// allow permits console messages that contain the text, for what a test does on purpose.
func (b *tab) allow(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed = append(b.allowed, text)
}

// check fails the test for each message on the console.
func (b *tab) check() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
messages:
	for _, problem := range b.problems {
		for _, allowed := range b.allowed {
			if strings.Contains(problem, allowed) {
				continue messages
			}
		}
		b.t.Errorf("the console shows: %s", problem)
	}
	b.problems = nil
}

// limited returns the tab's context with a timeout.
func (b *tab) limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(b.ctx, timeout)
}

// call calls a command in the browser's protocol.
func call[P, R any](b *tab, command cdp.Command[P, R], parameters P) R {
	b.t.Helper()
	ctx, cancel := b.limited()
	defer cancel()
	result, err := chromedp.Call(ctx, command, parameters)
	if err != nil {
		b.t.Fatalf("%s: %v", command.Method, err)
	}
	return result
}

// do runs actions.
func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := b.limited()
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatalf("browser: %v", err)
	}
}

// open navigates to a URL and returns the answer's status.
func (b *tab) open(url string) int64 {
	b.t.Helper()
	ctx, cancel := b.limited()
	defer cancel()
	response, err := chromedp.RunResponse(ctx, chromedp.Navigate(url))
	if err != nil {
		b.t.Fatalf("open %s: %v", url, err)
	}
	return response.Status
}

// size sets the window's size in CSS pixels.
func (b *tab) size(width, height int64) {
	b.t.Helper()
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1})
}

// theme selects "light" or "dark".
func (b *tab) theme(theme string) {
	b.t.Helper()
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
}

// withoutScripts disables the page's scripts.
func (b *tab) withoutScripts() {
	b.t.Helper()
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
}

// eval evaluates JavaScript, waits for a promise, and returns the result.
func eval[T any](b *tab, script string) T {
	b.t.Helper()
	ctx, cancel := b.limited()
	defer cancel()
	result, err := chromedp.Run(ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", script, err)
	}
	return result
}

// text returns the elements' visible text, for a CSS selector.
func (b *tab) text(selector string) []string {
	b.t.Helper()
	return eval[[]string](b, fmt.Sprintf(`[...document.querySelectorAll(%q)].map((e) => e.innerText.replace(/\s+/g, " ").trim())`, selector))
}

// content returns the page's visible content.
func (b *tab) content() string {
	b.t.Helper()
	return strings.Join(b.text("#page"), " ")
}

// waitFor waits until the document is loaded and the JavaScript expression is true, also in the
// next document, and returns how long it took.
func (b *tab) waitFor(what, expression string) time.Duration {
	b.t.Helper()
	begin := time.Now()
	ctx, cancel := b.limited()
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		// Evaluate fails during a navigation.
		if ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("document.readyState === 'complete' && !!("+expression+")")); err == nil && ok {
			return time.Since(begin)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			b.t.Fatalf("%s: not within %s; the page shows: %s", what, timeout, b.content())
		}
	}
}
