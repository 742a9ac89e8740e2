package simulator_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// newOrigin returns the address of a data path that sends every request to the handler.
func newOrigin(t *testing.T, handler http.HandlerFunc) (address string) {
	t.Helper()
	origin := httptest.NewServer(handler)
	t.Cleanup(origin.Close)
	s, id, address := newTunnel(t, simulator.Options{Dial: origins{"app:80": origin.Listener.Addr().String()}.dial})
	s.SetConfiguration(id, json.RawMessage(`{"ingress":[{"service":"http://app"}]}`))
	return address
}

// wire is a connection on which a request was sent and the response header read.
type wire struct {
	net.Conn
	buffered *bufio.Reader
	answer   *http.Response
}

func (w wire) Read(p []byte) (int, error) { return w.buffered.Read(p) }

// send writes the text, which begins with a request, to a new connection to the address.
func send(t *testing.T, address, text string) wire {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_, _ = io.WriteString(conn, strings.ReplaceAll(text, "\n", "\r\n"))
	w := wire{Conn: conn, buffered: bufio.NewReader(conn)}
	if w.answer, err = http.ReadResponse(w.buffered, nil); err != nil { //nolint:bodyclose // it ends with the connection
		t.Fatal(err)
	}
	return w
}

// body returns the response body.
func (w wire) body(t *testing.T) string {
	t.Helper()
	body, err := io.ReadAll(w.answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestOriginReceivesHostAndPathAsTheyWereSent(t *testing.T) {
	address := newOrigin(t, echo)
	for _, host := range []string{"a.test", "A.tESt", "a.test.", "A.test.:8080", "[::1]:80", "xn--bcher-kva.test"} {
		for _, target := range []string{
			"/", "//", "//a//b", "/a/../b/./c", "/a%2fb%2Fc", "/%61%00", "/a;b=c,d/@:!$&'()*+~", "/?", "/a?b=c;d&%zz", "/%2e%2e/?a=/../",
		} {
			w := send(t, address, "GET "+target+" HTTP/1.1\nHost: "+host+"\n\n")
			if got, want := w.body(t), fmt.Sprintf("HTTP/1.1 %s %s fwd=", host, target); got != want {
				t.Errorf("the origin received %q, want %q", got, want)
			}
		}
	}
}

func TestClientIsAppendedToXForwardedFor(t *testing.T) {
	address := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.Join(r.Header["X-Forwarded-For"], "|")) // #nosec G705 -- plain text
	})
	for header, want := range map[string]string{
		"":                             "127.0.0.1",
		"X-Forwarded-For: 192.0.2.1\n": "192.0.2.1, 127.0.0.1",
		"X-Forwarded-For: a\n" + "X-Forwarded-For: b, c\n": "a, b, c, 127.0.0.1",
	} {
		w := send(t, address, "GET / HTTP/1.1\nHost: a\n"+header+"\n")
		if got := w.body(t); got != want {
			t.Errorf("X-Forwarded-For after %q: %q, want %q", header, got, want)
		}
	}
}

func TestXForwardedProtoIsTheVisitorsScheme(t *testing.T) {
	address := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.Join(r.Header["X-Forwarded-Proto"], "|")+strings.Join(r.Header["Cf-Visitor-Scheme"], "|")) // #nosec G705 -- plain text
	})
	for header, want := range map[string]string{
		"":                           "http",
		"X-Forwarded-Proto: https\n": "http",
		"X-Forwarded-Proto: https\nX-Forwarded-Proto: ftp\n":       "http",
		"Cf-Visitor-Scheme: https\n":                               "https",
		"Cf-Visitor-Scheme: https\n" + "X-Forwarded-Proto: http\n": "https",
	} {
		w := send(t, address, "GET / HTTP/1.1\nHost: a\n"+header+"\n")
		if got := w.body(t); got != want {
			t.Errorf("X-Forwarded-Proto after %q: %q, want %q", header, got, want)
		}
	}
}

func TestTrailersAreForwarded(t *testing.T) {
	address := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Trailer", "Announced")
		_, _ = fmt.Fprintf(w, "%s, one=%s, other=%s", body, r.Trailer.Get("One"), r.Trailer.Get("Other")) // #nosec G705 -- plain text
		w.Header().Set("Announced", "first")
		w.Header().Set(http.TrailerPrefix+"Unannounced", "second")
	})
	for name, announced := range map[string]string{"announced": "Trailer: One, Other\n", "not announced": ""} {
		t.Run(name, func(t *testing.T) {
			w := send(t, address, "POST / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\nTE: trailers\n"+announced+
				"\n5\nhello\n0\nOne: 1\nOther: 2\n\n")
			if got, want := w.body(t), "hello, one=1, other=2"; got != want {
				t.Errorf("the origin received %q, want %q", got, want)
			}
			want := http.Header{"Announced": {"first"}, "Unannounced": {"second"}}
			if diff := cmp.Diff(want, w.answer.Trailer); diff != "" {
				t.Errorf("trailer of the answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnswerEndsBeforeItsRequest(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"with a trailer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "Status")
			_, _ = io.WriteString(w, "refused")
			w.Header().Set("Status", "7")
		},
		"after the beginning of the request": func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadFull(r.Body, make([]byte, len("begin"))); err != nil {
				t.Error(err)
			}
			w.Header().Set("Trailer", "Status")
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, "refused")
			w.Header().Set("Status", "7")
		},
	} {
		for _, length := range []string{"Transfer-Encoding: chunked\n\n5\n", "Content-Length: 1000000\n\n"} {
			t.Run(name+", "+length, func(t *testing.T) {
				address := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
					if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
						t.Error(err)
					}
					answer(w, r)
				})
				w := send(t, address, "POST / HTTP/1.1\nHost: a\n"+length+"begin\n")
				if got := w.body(t); got != "refused" || w.answer.Trailer.Get("Status") != "7" {
					t.Errorf("answer %q with trailer %v", got, w.answer.Trailer)
				}
			})
		}
	}
}

func TestRequestAndAnswerAreStreamed(t *testing.T) {
	address := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		lines := bufio.NewReader(r.Body)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			_, _ = io.WriteString(w, line)
			_ = http.NewResponseController(w).Flush()
		}
	})
	w := send(t, address, "POST / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n5\none\n\n")
	answer := bufio.NewReader(w.answer.Body)
	for _, want := range []string{"one\r\n", "two\r\n"} {
		if got, err := answer.ReadString('\n'); got != want {
			t.Fatalf("read %q, %v, want %q", got, err, want)
		}
		_, _ = io.WriteString(w, "5\r\ntwo\r\n\r\n")
	}
}
