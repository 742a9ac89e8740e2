package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"golang.org/x/term"

	"github.com/tunnel-gateway/tunnel-gateway/internal/mirror"
	"github.com/tunnel-gateway/tunnel-gateway/internal/progress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
	"github.com/tunnel-gateway/tunnel-gateway/internal/web"
)

// uiOptions are the flags of the command ui.
type uiOptions struct {
	sourceOptions
	port uint16
	diff diffOptions
}

const uiHelp = `Serves a page that shows what plan prints: the Gateways, their hostname tables, why a
request gets its answer, and what manifests would change. The page follows the cluster and
the manifests. It changes nothing, and has your permissions.

  ui                         shows a cluster
  ui -f FILE                 shows manifests and reads no cluster
  ui -f FILE --context NAME  shows a cluster as if the manifests were applied, and the
                             difference; so does --kubeconfig

Only this machine can open the page, with the link that ui prints. Each link works once, in
one browser; Enter prints another one. With an API token for Cloudflare, the page compares
with Cloudflare when you ask for it; it only reads. If a flag's description ends with a name
in brackets, the environment variable with this name also sets the flag.

Exit status:
  0    Ctrl-C ended the command
  1    an error occurred, or a manifest is not valid
  130  Ctrl-C ended the command before it printed a link`

// uiCommand returns the command ui. program is the program name in the examples.
func uiCommand(program string) *cobra.Command {
	var o uiOptions
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Serve a page with the hostname tables on this machine",
		Long:  uiHelp,
		Example: strings.ReplaceAll(`  PROGRAM ui
  PROGRAM ui --context production
  PROGRAM ui -f teams/ --context production
  PROGRAM ui -f config/samples --port 8088`, "PROGRAM", program),
		Args:              noManifests,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.addFlags(cmd.Flags())
	cmd.Flags().Uint16Var(&o.port, "port", 0, "`port` of the page on the loopback address; 0 is a free one")
	o.diff.addAccountFlags(cmd.Flags())
	registerCompletion(cmd, "context", o.completeContexts)
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json") // fails only for a flag that does not exist
	return cmd
}

func (o *uiOptions) run(cmd *cobra.Command) error {
	ctx := cmd.Context()
	if err := errors.Join(o.validate(cmd.Flags().Changed), o.diff.loadAccount()); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(o.port))))
	if err != nil {
		return fmt.Errorf("serve the page: %w; --port selects another port", err)
	}
	defer listener.Close() //nolint:errcheck // the server closes it too
	feed, err := o.newFeed(cmd)
	if err == nil {
		err = feed.publish(ctx, progress.New(streamOf(cmd.ErrOrStderr())))
	}
	if ctx.Err() != nil {
		return errInterrupted
	}
	if err != nil {
		return err
	}
	return o.serve(cmd, listener, feed)
}

// validate returns all errors in the flags. isSet reports whether a flag is set on the command
// line.
func (o *uiOptions) validate(isSet func(flag string) bool) error {
	var errs flagErrors
	o.check(&errs, isSet)
	return errors.Join(errs...)
}

// newFeed connects to the cluster and reads standard input, as far as the flags select them.
func (o *uiOptions) newFeed(cmd *cobra.Command) (*uiFeed, error) {
	reader, err := o.open(nil)
	if err != nil {
		return nil, err
	}
	f := &uiFeed{Feed: web.NewFeed(), reader: reader, files: &manifestFiles{paths: o.paths, recursive: o.recursive}, diff: &o.diff}
	if slices.Contains(o.paths, "-") {
		if f.files.stdin, err = readInterruptibly(cmd.Context(), func() ([]byte, error) { return io.ReadAll(cmd.InOrStdin()) }); err != nil {
			return nil, fmt.Errorf("read the manifests from standard input: %w", err)
		}
	}
	reader.readManifests = f.files.read
	if reader.connection != nil {
		f.mirror = mirror.Start(cmd.Context(), reader.connection)
		reader.live = f.mirror
	}
	return f, nil
}

// serve serves the page until the command's context ends.
func (o *uiOptions) serve(cmd *cobra.Command, listener net.Listener, feed *uiFeed) error {
	group, ctx := errgroup.WithContext(cmd.Context())
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	page := web.NewServer(web.Options{Feed: feed.Feed, Hosts: hostsOf(port), Input: o.describeInput()})
	printLink := func() { fmt.Fprintf(cmd.OutOrStdout(), "http://127.0.0.1:%s%s\n", port, page.NewLink()) }
	printLink()
	if input := o.keyboard(cmd); input != nil {
		terminal.Printf(cmd.ErrOrStderr(), "Enter prints another link, Ctrl-C ends the page.\n")
		go onEnter(input, printLink) // ends with the process
	}
	server := &http.Server{Handler: page, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	group.Go(func() error { return server.Serve(listener) })
	group.Go(func() error {
		feed.follow(ctx)
		return server.Close()
	})
	if err := group.Wait(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// hostsOf returns the values of the header Host for the port. Browsers leave out HTTP's own port.
func hostsOf(port string) []string {
	hosts := []string{"127.0.0.1:" + port, "localhost:" + port}
	if port == "80" {
		hosts = append(hosts, "127.0.0.1", "localhost")
	}
	return hosts
}

// describeInput names what the page shows.
func (o *uiOptions) describeInput() string {
	files := make([]string, len(o.paths))
	for i, path := range o.paths {
		if files[i] = filepath.Clean(path); path == "-" {
			files[i] = "standard input"
		}
	}
	if !o.readsCluster() {
		return strings.Join(files, ", ")
	}
	cluster := "the cluster"
	if raw, err := clientConfig(o.kubeconfig, o.context).RawConfig(); err == nil {
		if name := cmp.Or(o.context, raw.CurrentContext); name != "" {
			cluster = "context " + name
		}
	}
	if len(files) == 0 {
		return cluster
	}
	return cluster + " with " + strings.Join(files, ", ")
}

// keyboard returns standard input if a user can press Enter there; nil otherwise.
func (o *uiOptions) keyboard(cmd *cobra.Command) io.Reader {
	file, ok := cmd.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) || slices.Contains(o.paths, "-") {
		return nil
	}
	return file
}

// onEnter calls act for each line of the input.
func onEnter(input io.Reader, act func()) {
	for lines := bufio.NewScanner(input); lines.Scan(); {
		act()
	}
}
