package node_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/node"
)

// roleVariable is the environment variable that selects what the test binary runs:
// "container", "node" or "scheme", or the tests if it is not set.
const roleVariable = "NODE_TEST_ROLE"

// parentNodeName names the node that the test binary runs in its role "node".
const parentNodeName = "parent"

// repository is the image that the test binary replaces. sidecarRepositories are the same
// program with other ports.
const repository = "example.com/echo"

var sidecarRepositories = []string{"example.com/sidecar", "example.com/other-sidecar"}

// images returns the images for the nodes in these tests.
func images() map[string]node.Image {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	image := func(ports map[int32]string) node.Image {
		return node.Image{
			Command: []string{self, "first"}, Program: "echo",
			Environment: []string{roleVariable + "=container"}, Ports: ports,
		}
	}
	return map[string]node.Image{
		repository:             image(map[int32]string{8080: "HTTP_PORT", 9090: "READY_PORT"}),
		sidecarRepositories[0]: image(map[int32]string{8081: "HTTP_PORT", 9091: "READY_PORT"}),
		sidecarRepositories[1]: image(map[int32]string{8082: "HTTP_PORT", 9092: "READY_PORT"}),
	}
}

// runContainer is the program that runs in the Pods. Its first port serves "/" with the
// host name, and a path for each action that the tests need. Its second port reports
// whether the program is ready.
//
// With the argument "ready" it is a probe's command, and asks the running program.
func runContainer() int {
	if slices.Contains(os.Args, "ready") {
		return checkReady()
	}
	if os.Getenv("IGNORE_SIGTERM") != "" {
		signal.Ignore(syscall.SIGTERM)
	}
	if recorder := os.Getenv("RECORD_TO"); recorder != "" {
		record(recorder, "start")
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM)
		go func() {
			<-signals
			record(recorder, "stop")
			if os.Getenv("HANG_ON_SIGTERM") != "" {
				select {}
			}
			record(recorder, "end")
			os.Exit(0)
		}()
	}
	if address := os.Getenv("CONNECT_TO"); address != "" {
		// The connection stays open until the process ends, so the test detects the end.
		connection, err := net.Dial("tcp", address) //nolint:gosec // G704: the test sets the address
		if err != nil {
			panic(err)
		}
		defer func() { _ = connection.Close() }()
	}
	var unready atomic.Bool
	unready.Store(os.Getenv("UNREADY") != "")
	mux := http.NewServeMux()
	handle := func(path string, answer func(*http.Request) string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, answer(r)) })
	}
	handle("/", func(*http.Request) string { return os.Getenv("HOSTNAME") })
	handle("/env", func(r *http.Request) string { return os.Getenv(r.FormValue("variable")) })
	handle("/args", func(*http.Request) string { return fmt.Sprint(os.Args[1:]) })
	handle("/file", func(r *http.Request) string { return read(os.Getenv(r.FormValue("variable"))) })
	handle("/unready", func(r *http.Request) string { unready.Store(r.FormValue("is") == "true"); return "" })
	handle("/print", func(r *http.Request) string { fmt.Println(r.FormValue("text")); return "" })
	handle("/crash", func(*http.Request) string { os.Exit(3); return "" })
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

// record reports a process event to the address, and returns when the test has recorded
// it.
func record(address, event string) {
	response, err := http.Post("http://"+address+"/"+os.Getenv("NAME")+"/"+event, "", nil) //nolint:gosec // G704: the test sets the address
	if err != nil {
		panic(err)
	}
	_ = response.Body.Close()
}

// checkReady returns a probe's exit code: 0 if the program is ready. Like a program that
// hangs, it does not end if the program is not ready and HANG is set.
func checkReady() int {
	response, err := http.Get("http://127.0.0.1:" + os.Getenv("READY_PORT")) //nolint:gosec // G704: the node sets the port
	if err == nil {
		defer response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return 0
		}
	}
	if os.Getenv("HANG") != "" {
		select {}
	}
	return 1
}

func listen(variable string, handler http.Handler) {
	server := &http.Server{Addr: ":" + os.Getenv(variable), Handler: handler, ReadHeaderTimeout: timeout}
	fmt.Fprintln(os.Stderr, server.ListenAndServe())
	os.Exit(1)
}

func read(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(content)
}

// runNode runs a second node until the process is killed. It reads the kubeconfig
// from its standard input.
func runNode() int {
	startNode(readConfig(), parentNodeName)
	select {}
}

// runWithChangingScheme starts and stops nodes while it adds types to client-go's global
// scheme. It reads the kubeconfig from its standard input.
func runWithChangingScheme() int {
	go func() {
		for {
			if err := corev1.AddToScheme(scheme.Scheme); err != nil {
				panic(err)
			}
		}
	}()
	config := readConfig()
	for range 20 {
		if err := startNode(config, "scheme").Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return 0
}

// startNode starts a node that runs only the Pods that name it.
func startNode(config *rest.Config, name string) *node.Node {
	n, err := node.Start(context.Background(), config, node.Options{Name: name, Images: images(), OnlyNamed: true})
	if err != nil {
		panic(err)
	}
	return n
}

// readConfig reads the kubeconfig from the standard input.
func readConfig() *rest.Config {
	kubeconfig, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		panic(err)
	}
	return config
}
