package node_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/node"
)

// roleVariable makes the test binary another program.
const roleVariable = "NODE_TEST_ROLE"

// repository is the image that the test binary stands in for.
const repository = "example.com/echo"

// images returns what every node of these tests knows.
func images() map[string]node.Image {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return map[string]node.Image{repository: {
		Command:     []string{self, "first"},
		Environment: []string{roleVariable + "=container"},
		Ports:       map[int32]string{8080: "HTTP_PORT", 9090: "READY_PORT"},
	}}
}

// serve is what runs in the Pods: it answers with its name, and does what the
// path says. Its second port tells whether it is ready.
func serve() int {
	if os.Getenv("STUBBORN") != "" {
		signal.Ignore(syscall.SIGTERM)
	}
	if address := os.Getenv("CALL"); address != "" {
		// Held until the process ends: whoever listens there sees that.
		call, err := net.Dial("tcp", address) //nolint:gosec // G704: a test has named the address
		if err != nil {
			panic(err)
		}
		defer func() { _ = call.Close() }()
	}
	var unready atomic.Bool
	mux := http.NewServeMux()
	answer := func(path string, reply func(*http.Request) string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, reply(r)) })
	}
	answer("/", func(*http.Request) string { return os.Getenv("HOSTNAME") })
	answer("/env", func(r *http.Request) string { return os.Getenv(r.FormValue("of")) })
	answer("/args", func(*http.Request) string { return fmt.Sprint(os.Args[1:]) })
	answer("/file", func(r *http.Request) string { return read(os.Getenv(r.FormValue("of"))) })
	answer("/unready", func(r *http.Request) string { unready.Store(r.FormValue("is") == "true"); return "" })
	answer("/print", func(r *http.Request) string { fmt.Println(r.FormValue("text")); return "" })
	answer("/crash", func(*http.Request) string { os.Exit(3); return "" })
	ready := func(w http.ResponseWriter, _ *http.Request) {
		if unready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}
	fmt.Println("started")
	go listen("READY_PORT", http.HandlerFunc(ready))
	listen("HTTP_PORT", mux)
	return 1
}

func listen(variable string, handler http.Handler) {
	server := &http.Server{Addr: ":" + os.Getenv(variable), Handler: handler, ReadHeaderTimeout: soon}
	fmt.Fprintln(os.Stderr, server.ListenAndServe())
	os.Exit(1)
}

func read(path string) string {
	content, err := os.ReadFile(path) //nolint:gosec // G703: a test has named the path
	if err != nil {
		return err.Error()
	}
	return string(content)
}

// doomed is a program with a node of its own, which runs until it is killed. It
// is told of the cluster on its standard input.
func doomed() int {
	kubeconfig, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		panic(err)
	}
	if _, err = node.Start(context.Background(), config, node.Options{Name: "doomed", Images: images()}); err != nil {
		panic(err)
	}
	select {}
}
