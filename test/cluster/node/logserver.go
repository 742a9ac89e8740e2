package node

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// followInterval is how often a followed log is checked for new lines.
	followInterval = 100 * time.Millisecond
	// headerTimeout limits the time for reading a request header.
	headerTimeout = 10 * time.Second
)

// logServer is the part of the kubelet's API that `kubectl logs` and `kubectl port-forward`
// need.
type logServer struct {
	server *http.Server
	port   int32
}

// serveLogs serves the Pods' logs over HTTPS. By default the API server does not verify
// the certificate.
func serveLogs(n *Node) (*logServer, error) {
	certificate, err := selfSigned()
	if err != nil {
		return nil, fmt.Errorf("create a certificate: %w", err)
	}
	listener, err := tls.Listen("tcp", net.JoinHostPort(hostIP, "0"), &tls.Config{
		Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12,
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", n.serveLog)
	mux.HandleFunc("/portForward/{namespace}/{pod}", n.servePortForward)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout}
	go func() { _ = server.Serve(listener) }()                                               // returns after close
	return &logServer{server: server, port: int32(listener.Addr().(*net.TCPAddr).Port)}, nil //nolint:gosec // G115: ports have 16 bits
}

func (s *logServer) close() error { return s.server.Close() }

// selfSigned creates a self-signed certificate.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.ParseIP(hostIP)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// logOptions are the query parameters for the kubelet's endpoint: the fields in
// PodLogOptions.
type logOptions struct {
	follow, previous, timestamps bool
	since                        time.Time
	tail                         int // lines, or negative for all
	limit                        int // bytes, or negative for all
}

func parseLogOptions(query url.Values, now time.Time) (o logOptions, err error) {
	o.follow = query.Get("follow") == "true"
	o.previous = query.Get("previous") == "true"
	o.timestamps = query.Get("timestamps") == "true"
	number := func(name string) int {
		text := query.Get(name)
		if text == "" {
			return -1
		}
		n, invalid := strconv.Atoi(text)
		err = errors.Join(err, invalid)
		return n
	}
	o.tail, o.limit = number("tailLines"), number("limitBytes")
	if s := number("sinceSeconds"); s >= 0 {
		o.since = now.Add(-time.Duration(s) * time.Second)
	}
	if text := query.Get("sinceTime"); text != "" {
		since, invalid := time.Parse(time.RFC3339, text)
		o.since, err = since, errors.Join(err, invalid)
	}
	return o, err
}

func (n *Node) serveLog(w http.ResponseWriter, r *http.Request) {
	o, err := parseLogOptions(r.URL.Query(), time.Now())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c := n.container(types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("pod")}, r.PathValue("container"))
	if c == nil {
		http.Error(w, "the node does not run this container", http.StatusNotFound)
		return
	}
	log, err := c.logOf(o.previous)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	o.write(r.Context(), w, log)
}

// container returns the container with that name, or nil if the node does not run it.
func (n *Node) container(pod types.NamespacedName, name string) *container {
	p := n.runningPod(pod)
	if p == nil {
		return nil
	}
	for _, c := range p.allContainers() {
		if c.spec.Name == name {
			return c
		}
	}
	return nil
}

// logOf returns the current or the previous process's log.
func (c *container) logOf(previous bool) (*outputLog, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case previous && c.previous == nil:
		return nil, fmt.Errorf("previous terminated container %q in pod %q not found", c.spec.Name, c.pod.object.Name)
	case previous:
		return c.previous, nil
	case c.log == nil:
		return nil, fmt.Errorf("container %q in pod %q is waiting to start: %s", c.spec.Name, c.pod.object.Name, c.current.State.Waiting.Reason)
	default:
		return c.log, nil
	}
}

// write writes the lines that the options select. With follow, it also writes
// later lines, until the process ends or ctx is canceled.
func (o logOptions) write(ctx context.Context, w http.ResponseWriter, log *outputLog) {
	lines, done := log.linesFrom(0)
	next := len(lines)
	if i := slices.IndexFunc(lines, func(l line) bool { return !l.timestamp.Before(o.since) }); i >= 0 {
		lines = lines[i:]
	} else {
		lines = nil
	}
	if o.tail >= 0 && o.tail < len(lines) {
		lines = lines[len(lines)-o.tail:]
	}
	written := 0
	for {
		text := o.text(lines)
		if o.limit >= 0 && written+len(text) > o.limit {
			text = text[:o.limit-written]
		}
		_, err := w.Write(text) //nolint:gosec // G705: the log is plain text
		written += len(text)
		if err != nil || !o.follow || done || written == o.limit || ctx.Err() != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		pause(ctx, followInterval)
		lines, done = log.linesFrom(next)
		next += len(lines)
	}
}

func (o logOptions) text(lines []line) []byte {
	var text bytes.Buffer
	for _, l := range lines {
		if o.timestamps {
			text.WriteString(l.timestamp.UTC().Format(time.RFC3339Nano) + " ")
		}
		text.WriteString(l.text)
	}
	return text.Bytes()
}
