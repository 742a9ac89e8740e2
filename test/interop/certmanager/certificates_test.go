package certmanager

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// object returns an empty object of one of cert-manager's kinds.
func object(kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("cert-manager.io/v1")
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func certificate(namespace, name string) *unstructured.Unstructured {
	return object("Certificate", namespace, name)
}

func secret(namespace, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// createIssuer creates a certificate authority that signs with the common name
// of its own: an Issuer, or a ClusterIssuer when namespace is empty.
func createIssuer(namespace, name string) {
	GinkgoHelper()
	kind, home := "Issuer", namespace
	if namespace == "" {
		kind, home = "ClusterIssuer", issuerNamespace
	}
	root := object(kind, namespace, name+"-root")
	root.Object["spec"] = map[string]any{"selfSigned": map[string]any{}}
	authority := certificate(home, name)
	authority.Object["spec"] = map[string]any{
		"isCA": true, "commonName": name, "secretName": name,
		"privateKey": map[string]any{"algorithm": "ECDSA"},
		"issuerRef":  map[string]any{"kind": kind, "name": name + "-root"},
	}
	issuer := object(kind, namespace, name)
	issuer.Object["spec"] = map[string]any{"ca": map[string]any{"secretName": name}}
	create(root, authority, issuer)
}

// leaf returns the certificate in the Secret, nil when there is none.
func leaf(namespace, name string) *x509.Certificate {
	GinkgoHelper()
	s := secret(namespace, name)
	if !exists(s) {
		return nil
	}
	block, _ := pem.Decode(s.Data[corev1.TLSCertKey])
	Expect(block).NotTo(BeNil())
	c, err := x509.ParseCertificate(block.Bytes)
	Expect(err).NotTo(HaveOccurred())
	return c
}

// signedBy returns who signed the certificate in the Secret, as "kind name", by
// what the Certificate asks for; the two have to be the same.
func signedBy(namespace, name string) string {
	GinkgoHelper()
	ref, _, err := unstructured.NestedStringMap(fresh(certificate(namespace, name)).Object, "spec", "issuerRef")
	Expect(err).NotTo(HaveOccurred())
	c := leaf(namespace, name)
	Expect(c).NotTo(BeNil())
	Expect(c.Issuer.CommonName).To(Equal(ref["name"]))
	return ref["kind"] + " " + ref["name"]
}

// revision returns how often the Certificate was issued.
func revision(namespace, name string) int64 {
	GinkgoHelper()
	n, _, err := unstructured.NestedInt64(fresh(certificate(namespace, name)).Object, "status", "revision")
	Expect(err).NotTo(HaveOccurred())
	return n
}

// ready returns the status of the Certificate's condition Ready; "none" when
// there is no such Certificate.
func ready(namespace, name string) string {
	GinkgoHelper()
	c := certificate(namespace, name)
	if !exists(c) {
		return "none"
	}
	return condition(c, "Ready")
}

func condition(o *unstructured.Unstructured, kind string) string {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, one := range conditions {
		if c, ok := one.(map[string]any); ok && c["type"] == kind {
			return fmt.Sprint(c["status"])
		}
	}
	return "none"
}

// owner returns the kind and the name of what the Certificate belongs to.
func owner(namespace, name string) string {
	GinkgoHelper()
	o := metav1.GetControllerOf(fresh(certificate(namespace, name)))
	if o == nil {
		return "nobody"
	}
	return o.Kind + " " + o.Name
}

// renew asks for a new certificate as `cmctl renew` does, and waits for it.
func renew(namespace, name string) {
	GinkgoHelper()
	before, old := revision(namespace, name), leaf(namespace, name)
	c := fresh(certificate(namespace, name))
	conditions, _, err := unstructured.NestedSlice(c.Object, "status", "conditions")
	Expect(err).NotTo(HaveOccurred())
	Expect(unstructured.SetNestedSlice(c.Object, append(conditions, map[string]any{
		"type": "Issuing", "status": "True", "reason": "ManuallyTriggered",
		"message": "Certificate re-issuance manually triggered", "observedGeneration": c.GetGeneration(),
	}), "status", "conditions")).To(Succeed())
	Expect(kube.Status().Update(context.Background(), c)).To(Succeed())
	Eventually(revision).WithArguments(namespace, name).Should(Equal(before + 1))
	Expect(leaf(namespace, name).SerialNumber).NotTo(Equal(old.SerialNumber))
}
