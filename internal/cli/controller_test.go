package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
)

func TestCertificatesAreCheckedInTheConfiguredNamespaces(t *testing.T) {
	for name, test := range map[string]struct {
		flags  config.Kubernetes
		served []string
		all    bool
		want   []string
	}{
		"default":                       {config.Kubernetes{ValidateCertificates: true}, nil, true, nil},
		"disabled":                      {config.Kubernetes{}, nil, false, nil},
		"disabled with --namespaces":    {config.Kubernetes{Namespaces: []string{"a", "b"}}, []string{"a", "b"}, false, nil},
		"served namespaces":             {config.Kubernetes{ValidateCertificates: true, Namespaces: []string{"a", "b"}}, []string{"a"}, false, []string{"a"}},
		"some of all namespaces":        {config.Kubernetes{ValidateCertificates: true, CertificateNamespaces: []string{"a"}}, nil, false, []string{"a"}},
		"some of the served namespaces": {config.Kubernetes{ValidateCertificates: true, Namespaces: []string{"a", "b", "c"}, CertificateNamespaces: []string{"a", "b"}}, []string{"a", "c"}, false, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := readsAllSecrets(test.flags); got != test.all {
				t.Errorf("readsAllSecrets = %v, want %v", got, test.all)
			}
			if test.all {
				return
			}
			if diff := cmp.Diff(test.want, secretNamespaces(test.flags, test.served)); diff != "" {
				t.Errorf("secretNamespaces differs (-want +got):\n%s", diff)
			}
		})
	}
}
