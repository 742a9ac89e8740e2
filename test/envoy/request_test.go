package envoy

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// row is a request and its expected outcome.
type row struct {
	// request is a line "METHOD HOST/PATH", and the header lines.
	request string
	// want is the status, and after it, the backend's name, the method and the path if
	// the request arrived. These lines follow, each group in the message's order:
	//
	//	TLS name         the name in the TLS handshake with the backend
	//	> Name: value    the headers that arrived, if they are not those of the request
	//	< Name: value    the headers of the response
	//	. Name: value    the trailers of the response
	want string
}

// The headers that the connector adds to all requests. Outcomes leave them out.
var connectorHeaders = []string{"X-Forwarded-For: 203.0.113.7", "X-Forwarded-Proto: https"}

// hiddenHeaders are in no outcome: every response has them, they describe the body length, or
// proxystatus_test.go compares them.
var hiddenHeaders = []string{"connection", "content-length", "content-type", "date", "proxy-status", "transfer-encoding"}

// request is a row's request.
type request struct {
	method, host, target string
	lines                []string
	body                 string
}

func parseRequest(text string) request {
	all := strings.Split(strings.TrimSpace(text), "\n")
	method, url, _ := strings.Cut(all[0], " ")
	slash := strings.IndexAny(url+"/", "/?")
	r := request{method: method, host: url[:slash], target: url[slash:]}
	for _, line := range all[1:] {
		r.lines = append(r.lines, strings.TrimLeft(line, " \t"))
	}
	return r
}

// text returns the request as it is sent.
func (r request) text() string {
	lines := slices.Concat([]string{"Host: " + r.host}, r.sent())
	if r.body != "" {
		lines = append(lines, "Content-Length: "+strconv.Itoa(len(r.body)))
	}
	return fmt.Sprintf("%s %s HTTP/1.1\r\n%s\r\n\r\n%s", r.method, r.target, strings.Join(lines, "\r\n"), r.body)
}

// sent returns the request's headers with the headers that the connector adds. If a row has a
// scheme, the request has it as the visitor's scheme.
func (r request) sent() []string {
	added := connectorHeaders
	if slices.ContainsFunc(r.lines, isScheme) {
		added = slices.DeleteFunc(slices.Clone(added), isScheme)
	}
	return slices.Concat(r.lines, added)
}

func isScheme(line string) bool { return strings.HasPrefix(line, routing.ForwardedProto+":") }

// outcome is what happened to a request.
type outcome struct {
	status   int
	headers  []string
	body     string
	trailers []string
	// arrival is nil when no backend responded.
	arrival *arrival
}

const clientTimeout = 20 * time.Second

// send sends a request to a listener as a connector does.
func send(t *testing.T, address, text string) outcome {
	t.Helper()
	o, err := exchange(address, text)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func exchange(address, text string) (outcome, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return outcome{}, err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(clientTimeout)); err != nil {
		return outcome{}, err
	}
	if _, err := io.WriteString(conn, text); err != nil {
		return outcome{}, err
	}
	method, _, _ := strings.Cut(text, " ")
	return readOutcome(bufio.NewReader(conn), method)
}

func readOutcome(r *bufio.Reader, method string) (outcome, error) {
	h, text, err := readHead(r)
	if err != nil {
		return outcome{}, fmt.Errorf("read the response: %w", err)
	}
	response, err := http.ReadResponse(bufio.NewReader(io.MultiReader(strings.NewReader(text), r)), &http.Request{Method: method})
	if err != nil {
		return outcome{}, err
	}
	defer response.Body.Close()
	o := outcome{status: response.StatusCode, headers: h.lines}
	if response.StatusCode == http.StatusSwitchingProtocols {
		return o, nil
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return outcome{}, fmt.Errorf("read the body: %w", err)
	}
	o.body, o.trailers = string(body), trailerLines(response.Trailer)
	var a arrival
	if json.Unmarshal(body, &a) == nil && a.Backend != "" {
		o.arrival = &a
	}
	return o, nil
}

// headersThatArrived returns the header lines without the headers that every request has.
func (o outcome) headersThatArrived(r request) []string {
	standard := append(slices.Clone(connectorHeaders), "Host: "+r.host, "content-length: 0")
	return slices.DeleteFunc(slices.Clone(o.arrival.Lines), func(line string) bool { return slices.Contains(standard, line) })
}

// describe returns the outcome in the form of [row.want].
func (o outcome) describe(r request) string {
	lines := []string{strconv.Itoa(o.status)}
	if o.arrival != nil {
		lines[0] += " " + o.arrival.Backend + " " + strings.TrimSuffix(o.arrival.Start, " HTTP/1.1")
		if o.arrival.ServerName != "" {
			lines = append(lines, "TLS "+o.arrival.ServerName)
		}
		if arrived := o.headersThatArrived(r); !slices.Equal(arrived, r.lines) {
			lines = append(lines, prefixed("> ", arrived)...)
			if len(arrived) == 0 {
				lines = append(lines, ">")
			}
		}
	}
	lines = append(lines, prefixed("< ", without(o.headers, hiddenHeaders...))...)
	return strings.Join(append(lines, prefixed(". ", o.trailers)...), "\n")
}

func prefixed(prefix string, lines []string) []string {
	all := make([]string, len(lines))
	for i, line := range lines {
		all[i] = prefix + line
	}
	return all
}

// run sends the requests to the open listener, and compares their outcomes.
func run(t *testing.T, rows []row) {
	t.Helper()
	b := start(t)
	for _, row := range rows {
		t.Run(row.name(), func(t *testing.T) {
			if problem := b.check(t, b.open, row); problem != "" {
				t.Error(problem)
			}
		})
	}
}

func (r row) name() string { return strings.Join(lines(r.request), ", ") }

// check sends a row's request to a listener, and returns how the outcome differs from the
// expected one and from the routing table's answer.
func (b *bed) check(t *testing.T, address string, row row) string {
	t.Helper()
	r := parseRequest(row.request)
	o := send(t, address, r.text())
	if diff := cmp.Diff(lines(row.want), lines(o.describe(r))); diff != "" {
		return fmt.Sprintf("unexpected outcome (-want +got):\n%s\nbody: %.300s", diff, o.body)
	}
	if problem := compareWithAnswer(b.table, r, o, address == b.protected); problem != "" {
		return "routing.Table.Answer: " + problem
	}
	return ""
}

// lines returns an outcome's lines without indentation.
func lines(text string) []string {
	var all []string
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		all = append(all, strings.TrimLeft(line, " \t"))
	}
	return all
}

// routed returns those parts of the request that decide which entry answers it.
func (r request) routed() (routing.Request, error) {
	path, query, _ := strings.Cut(r.target, "?")
	host, _, _ := strings.Cut(strings.ToLower(r.host), ":")
	normalized, err := envoy.Capabilities().RequestPath(path)
	headers := map[string][]string{}
	for _, line := range r.sent() {
		name, value, _ := strings.Cut(line, ":")
		name = textproto.CanonicalMIMEHeaderKey(name)
		headers[name] = append(headers[name], strings.TrimSpace(value))
	}
	return routing.Request{
		Scheme: routing.SchemeOf(strings.Join(headers[routing.ForwardedProto], ",")),
		Host:   strings.TrimSuffix(host, "."), Path: normalized, Method: r.method, Headers: headers, Query: query,
	}, err
}

// compareWithAnswer returns how the outcome differs from the routing table's answer.
func compareWithAnswer(table *routing.Table, r request, o outcome, protected bool) string {
	routed, err := r.routed()
	if err != nil || o.status == http.StatusBadRequest {
		return "" // no path that the table knows
	}
	if (table.Access.Of(routed.Host) != nil) != protected {
		return differs(o.status == http.StatusNotFound, "the other listener serves the host")
	}
	if o.status == http.StatusForbidden {
		return ""
	}
	entry, _ := table.Answer(routed)
	switch {
	case entry == nil:
		return differs(o.status == http.StatusNotFound && o.arrival == nil, "no entry answers")
	case entry.Action.CORS != nil && o.arrival == nil:
		return "" // a preflight
	case entry.Action.Redirect != nil:
		return compareRedirect(entry, routed, o)
	case entry.Action.Forward != nil:
		return compareForward(entry.Action.Forward, o)
	default:
		return differs(o.status == entry.Action.Status, "an entry returns %d", entry.Action.Status)
	}
}

func compareRedirect(entry *routing.Entry, r routing.Request, o outcome) string {
	location := "location: " + entry.Location(r)
	ok := o.status == entry.Action.Redirect.Status && slices.Contains(o.headers, location)
	return differs(ok, "an entry redirects with status %d and %s", entry.Action.Redirect.Status, location)
}

func compareForward(f *routing.Forward, o outcome) string {
	names := map[string]bool{}
	for _, w := range f.Backends {
		names[w.Backend.Service.Name] = true
	}
	ok := o.arrival == nil && o.status != http.StatusNotFound || o.arrival != nil && names[o.arrival.Backend]
	return differs(ok, "an entry forwards to %v", slices.Sorted(maps.Keys(names)))
}

func differs(ok bool, format string, args ...any) string {
	if ok {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// sendMany sends requests one after the other on a few connections, and counts the
// responses by status and backend.
func (b *bed) sendMany(t *testing.T, host, path string, n int) map[string]int {
	t.Helper()
	const connections = 4
	results := make(chan string, n)
	var group errgroup.Group
	for i := range connections {
		group.Go(func() error {
			transport := &http.Transport{DisableCompression: true}
			defer transport.CloseIdleConnections()
			for range (n + i) / connections {
				result, err := get(transport, b.open, host, path)
				if err != nil {
					return err
				}
				results <- result
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	close(results)
	counts := map[string]int{}
	for result := range results {
		counts[result]++
	}
	return counts
}

// get sends a request and returns the status and the backend.
func get(transport *http.Transport, address, host, path string) (string, error) {
	r, err := http.NewRequest(http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return "", err
	}
	r.Host = host
	response, err := transport.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var a arrival
	body, err := io.ReadAll(response.Body)
	if json.Unmarshal(body, &a) != nil {
		return strconv.Itoa(response.StatusCode), err
	}
	return strconv.Itoa(response.StatusCode) + " " + a.Backend, err
}
