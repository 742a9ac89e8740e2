package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
)

func TestSecretNamespaces(t *testing.T) {
	for name, test := range map[string]struct {
		flags  config.Kubernetes
		served []string
		all    bool
		want   []string
	}{
		"by default":                         {config.Kubernetes{ValidateCertificates: true}, nil, true, nil},
		"switched off":                       {config.Kubernetes{}, nil, false, nil},
		"switched off in some namespaces":    {config.Kubernetes{Namespaces: []string{"a", "b"}}, []string{"a", "b"}, false, nil},
		"in the namespaces that are served":  {config.Kubernetes{ValidateCertificates: true, Namespaces: []string{"a", "b"}}, []string{"a"}, false, []string{"a"}},
		"in some of all namespaces":          {config.Kubernetes{ValidateCertificates: true, CertificateNamespaces: []string{"a"}}, nil, false, []string{"a"}},
		"in those of the served that may be": {config.Kubernetes{ValidateCertificates: true, Namespaces: []string{"a", "b", "c"}, CertificateNamespaces: []string{"a", "b"}}, []string{"a", "c"}, false, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := readsAllSecrets(test.flags); got != test.all {
				t.Errorf("in all namespaces: %v, want %v", got, test.all)
			}
			if test.all {
				return
			}
			if diff := cmp.Diff(test.want, secretNamespaces(test.flags, test.served)); diff != "" {
				t.Errorf("the namespaces differ (-want +got):\n%s", diff)
			}
		})
	}
}
