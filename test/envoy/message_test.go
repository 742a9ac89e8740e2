package envoy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
)

// head is a message's start line and header lines, as they were sent.
type head struct {
	start string
	lines []string
}

// readHead reads a head, and returns its text too.
func readHead(r *bufio.Reader) (head, string, error) {
	var h head
	var text strings.Builder
	for {
		line, err := r.ReadString('\n')
		text.WriteString(line)
		if err != nil {
			return h, text.String(), err
		}
		line = strings.TrimRight(line, "\r\n")
		switch {
		case line == "":
			return h, text.String(), nil
		case h.start == "":
			h.start = line
		default:
			h.lines = append(h.lines, line)
		}
	}
}

func nameOf(line string) string {
	name, _, _ := strings.Cut(line, ":")
	return strings.ToLower(name)
}

// without returns the lines for the other headers.
func without(lines []string, names ...string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return slices.Contains(names, nameOf(line)) })
}

// trailerLines returns the trailers, sorted.
func trailerLines(trailer http.Header) []string {
	var lines []string
	for name, values := range trailer {
		for _, v := range values {
			lines = append(lines, name+": "+v)
		}
	}
	slices.Sort(lines)
	return lines
}

// readBody reads a message's body after its head.
func readBody(h head, r *bufio.Reader) (string, http.Header, error) {
	headers := http.Header{}
	for _, line := range h.lines {
		name, value, _ := strings.Cut(line, ":")
		headers.Add(name, strings.TrimSpace(value))
	}
	// A request needs no special cases: without a length, it has no body.
	request := "POST / HTTP/1.1\r\nHost: x\r\n"
	for _, name := range []string{"Content-Length", "Transfer-Encoding", "Trailer"} {
		for _, v := range headers[name] {
			request += name + ": " + v + "\r\n"
		}
	}
	parsed, err := http.ReadRequest(bufio.NewReader(io.MultiReader(strings.NewReader(request+"\r\n"), r)))
	if err != nil {
		return "", nil, err
	}
	body, err := io.ReadAll(parsed.Body)
	return string(body), parsed.Trailer, err
}

// chunked returns the body in chunks, with trailers.
func chunked(body string, trailers ...string) string {
	var b bytes.Buffer
	w := httputil.NewChunkedWriter(&b)
	_, err := io.WriteString(w, body)
	if err := errors.Join(err, w.Close()); err != nil {
		panic(err) // a buffer returns no error
	}
	for _, t := range trailers {
		b.WriteString(t + "\r\n")
	}
	return b.String() + "\r\n"
}
