package cli

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tunnel-gateway/tunnel-gateway/internal/check"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/probe"
)

// noNames is a resolver without names.
type noNames struct{}

func (noNames) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, errors.New("no names in tests")
}

func (noNames) LookupCNAME(context.Context, string) (string, error) {
	return "", errors.New("no names in tests")
}

// withoutCRDs is a cluster for a user who may not read CRDs.
type withoutCRDs struct{ client.Reader }

func (r withoutCRDs) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(*metav1.PartialObjectMetadataList); ok {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "customresourcedefinitions"}, "", nil)
	}
	return r.Reader.List(ctx, list, opts...)
}

// runCheck runs check in a cluster whose objects no controller has processed.
func runCheck(t *testing.T, arguments ...string) result {
	t.Helper()
	text, err := os.ReadFile("../check/testdata/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	set, err := manifest.Read([]string{"-"}, manifest.Options{Stdin: bytes.NewReader(text), Namespace: "default"})
	if err != nil {
		t.Fatal(err)
	}
	live := fake.NewClientBuilder().WithScheme(manifest.Scheme()).WithObjects(set.Objects...).Build()
	return runCheckIn(t, surroundings{live: withoutCRDs{live}, network: probe.Network{Resolver: noNames{}}}, arguments...)
}

func runCheckIn(t *testing.T, s surroundings, arguments ...string) result {
	t.Helper()
	for _, variable := range []string{"CLOUDFLARE_API_TOKEN", "CLOUDFLARE_BASE_URL", "NO_COLOR"} {
		t.Setenv(variable, "")
	}
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	var o checkOptions
	cmd := &cobra.Command{Use: "check", Args: oneTarget, SilenceErrors: true, SilenceUsage: true, RunE: func(cmd *cobra.Command, arguments []string) error {
		request, err := o.validate(arguments[0], cmd.Flags().Changed)
		if err != nil {
			return err
		}
		if o.connectTo != "" {
			if s.network, err = o.network(); err != nil {
				return err
			}
		}
		return o.execute(cmd, s, request)
	}}
	o.addFlags(cmd.Flags())
	var stdout, stderr bytes.Buffer
	cmd.SetArgs(arguments)
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	err := cmd.ExecuteContext(t.Context())
	return result{stdout.String(), stderr.String(), err}
}

func TestCheckPrintsTheSteps(t *testing.T) {
	got := runCheck(t, "shop.example.com/cart", "--no-request")
	if exitStatus(got.err) != exitUnexpectedCondition {
		t.Errorf("error = %v, want a failed check", got.err)
	}
	for _, want := range []string{
		"https://shop.example.com/cart\n\ndecision     ok       Gateway infra/shared receives the request: listener web of ListenerSet team/shop, for shop.example.com.\n",
		"\nobjects      failed   Gateway infra/shared: Accepted is Unknown: Pending: Waiting for controller\n",
		"\nbackend      ok       Service team/web port 80: 2 endpoints ready.\n",
		"\ndns ", "\ncertificate ", "\naccess ", "\nrequest ", "\n\nFailed: objects",
	} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("the output does not contain %q:\n%s", want, got.stdout)
		}
	}
}

func TestCheckInJSON(t *testing.T) {
	got := runCheck(t, "shop.example.com", "--no-request", "-o", "json")
	var report struct {
		URL, Result string
		Steps       []struct {
			Name, Result string
			Findings     []struct{ Result, Message, Advice string }
		}
	}
	if err := json.Unmarshal([]byte(got.stdout), &report); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range report.Steps {
		names = append(names, s.Name)
		if s.Result == "" || len(s.Findings) == 0 || s.Findings[0].Message == "" {
			t.Errorf("step %s has no result or no finding", s.Name)
		}
	}
	if report.URL != "https://shop.example.com/" || report.Result != "failed" || strings.Join(names, " ") != "decision objects backend dns certificate access request" {
		t.Errorf("url %s, result %s, steps %q", report.URL, report.Result, names)
	}
}

func TestCheckSelectsAGateway(t *testing.T) {
	got := runCheck(t, "shop.example.com", "--no-request", "--gateway", "infra/other")
	if got.err == nil || !strings.Contains(got.err.Error(), "Gateway infra/other: not found") || exitStatus(got.err) != exitFailure {
		t.Errorf("error = %v, want that the Gateway does not exist", got.err)
	}
}

func TestCheckRejectsArguments(t *testing.T) {
	for _, test := range []struct {
		arguments []string
		want      string
	}{
		{nil, "requires one hostname or URL"},
		{[]string{"a.example.com", "b.example.com"}, "got 2 arguments"},
		{[]string{"*.example.com"}, "wildcard"},
		{[]string{"https://user:s3cr3t@shop.example.com"}, "a user name is not supported"},
		{[]string{"https://user:s3cr3t@shop.example.com:port"}, "not a hostname or URL"},
		{[]string{"https://user:s3cr3t/@shop.example.com"}, "not a hostname or URL"},
		{[]string{"user:s3cr3t@shop.example.com"}, "a user name is not supported"},
		{[]string{"shop.example.com:8080"}, "port 8080"},
		{[]string{"shop.example.com", "-o", "yaml"}, "--output must be one of table, json"},
		{[]string{"shop.example.com", "-o", "json", "--color", "always"}, "--color has no effect"},
		{[]string{"shop.example.com", "--timeout", "0s"}, "--timeout must be greater than 0"},
		{[]string{"shop.example.com", "--gateway", "shared"}, "--gateway must be of the form namespace/name"},
		{[]string{"shop.example.com", "--connect-to", "edge.example.com"}, "--connect-to must be an IP address"},
		{[]string{"shop.example.com", "--method", ""}, "--method must not be empty"},
		{[]string{"shop.example.com", "--header", "s3cr3t"}, "--header must be of the form NAME:VALUE"},
		{[]string{"http://shop.example.com", "--header", "Authorization: s3cr3t"}, "https"},
		{[]string{"shop.example.com", "--header", "X: s3cr3t\x01"}, "not allowed"},
	} {
		got := runCheckIn(t, surroundings{}, test.arguments...)
		if got.err == nil || !strings.Contains(got.err.Error(), test.want) || strings.Contains(got.err.Error(), "s3cr3t") || got.stdout != "" {
			t.Errorf("%q: error = %v, want one with %q", test.arguments, got.err, test.want)
		}
	}
}

func TestCheckConnectsToAnAddress(t *testing.T) {
	certificate, authority := edgeCertificate(t)
	edge := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Host", r.Host)
		w.WriteHeader(http.StatusTeapot)
	}))
	edge.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	edge.StartTLS()
	defer edge.Close()
	got := runCheck(t, "shop.example.com", "--connect-to", edge.Listener.Addr().String(), "--ca-file", authority)
	for _, want := range []string{"\ndns          ok       The check connects to 127.0.0.1:", "\ncertificate  ok       The certificate for shop.example.com was issued by", "status 418"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("the output does not contain %q:\n%s%v", want, got.stdout, got.err)
		}
	}
	for _, file := range []string{"check_test.go", "none.pem"} {
		if got := runCheck(t, "shop.example.com", "--connect-to", "127.0.0.1", "--ca-file", file); got.err == nil || !strings.HasPrefix(got.err.Error(), "--ca-file: ") {
			t.Errorf("error = %v for --ca-file %s", got.err, file)
		}
	}
}

// edgeCertificate returns a certificate for shop.example.com, and a file with it.
func edgeCertificate(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"shop.example.com"}, NotAfter: time.Now().Add(30 * 24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}

// slowReader answers only when the context ends.
type slowReader struct{ client.Reader }

func (slowReader) List(ctx context.Context, _ client.ObjectList, _ ...client.ListOption) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestCheckEndsAfterTheTimeout(t *testing.T) {
	start := time.Now()
	got := runCheckIn(t, surroundings{live: slowReader{}}, "shop.example.com", "--timeout", "50ms")
	if got.err == nil || !strings.Contains(got.err.Error(), "took longer than --timeout 50ms") || time.Since(start) > 10*time.Second {
		t.Errorf("error = %v after %s, want the timeout", got.err, time.Since(start))
	}
}

func TestStatusOfCheck(t *testing.T) {
	for _, test := range []struct {
		result check.Result
		strict bool
		want   int
	}{
		{check.OK, true, exitOK}, {check.Warning, false, exitOK}, {check.Unknown, false, exitOK}, {check.Failed, false, exitUnexpectedCondition},
		{check.Warning, true, exitUnexpectedCondition}, {check.Unknown, true, exitUnexpectedCondition},
	} {
		o := checkOptions{strict: test.strict}
		if got := exitStatus(o.verdict(&check.Report{Result: test.result})); got != test.want {
			t.Errorf("status = %d with %s, strict %t, want %d", got, test.result, test.strict, test.want)
		}
	}
}
