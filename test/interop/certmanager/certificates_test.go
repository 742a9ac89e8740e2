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

// certManagerObject returns an empty cert-manager object.
func certManagerObject(kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("cert-manager.io/v1")
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func certificate(namespace, name string) *unstructured.Unstructured {
	return certManagerObject("Certificate", namespace, name)
}

func secret(namespace, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// createIssuer creates an Issuer, or a ClusterIssuer if the namespace is empty. Its CA
// certificate has the issuer's name as its common name.
func createIssuer(namespace, name string) {
	GinkgoHelper()
	kind, secretNamespace := "Issuer", namespace
	if namespace == "" {
		kind, secretNamespace = "ClusterIssuer", issuerNamespace
	}
	root := certManagerObject(kind, namespace, name+"-root")
	root.Object["spec"] = map[string]any{"selfSigned": map[string]any{}}
	authority := certificate(secretNamespace, name)
	authority.Object["spec"] = map[string]any{
		"isCA": true, "commonName": name, "secretName": name,
		"privateKey": map[string]any{"algorithm": "ECDSA"},
		"issuerRef":  map[string]any{"kind": kind, "name": name + "-root"},
	}
	issuer := certManagerObject(kind, namespace, name)
	issuer.Object["spec"] = map[string]any{"ca": map[string]any{"secretName": name}}
	create(root, authority, issuer)
}

// storedCertificate returns the certificate in the Secret, or nil if it does not exist.
func storedCertificate(namespace, name string) *x509.Certificate {
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

// signedBy returns the Certificate's issuer as "kind name", and checks that this issuer
// signed the certificate in the Secret.
func signedBy(namespace, name string) string {
	GinkgoHelper()
	ref, _, err := unstructured.NestedStringMap(get(certificate(namespace, name)).Object, "spec", "issuerRef")
	Expect(err).NotTo(HaveOccurred())
	c := storedCertificate(namespace, name)
	Expect(c).NotTo(BeNil())
	Expect(c.Issuer.CommonName).To(Equal(ref["name"]))
	return ref["kind"] + " " + ref["name"]
}

// revision returns how many times cert-manager has issued the Certificate.
func revision(namespace, name string) int64 {
	GinkgoHelper()
	n, _, err := unstructured.NestedInt64(get(certificate(namespace, name)).Object, "status", "revision")
	Expect(err).NotTo(HaveOccurred())
	return n
}

// readyStatus returns the status of the Certificate's condition Ready, or "none" if the
// Certificate does not exist.
func readyStatus(namespace, name string) string {
	GinkgoHelper()
	c := certificate(namespace, name)
	if !exists(c) {
		return "none"
	}
	return condition(c, "Ready")
}

// condition returns the status of a condition, or "none" if the object lacks it.
func condition(o *unstructured.Unstructured, conditionType string) string {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, item := range conditions {
		if c, ok := item.(map[string]any); ok && c["type"] == conditionType {
			return fmt.Sprint(c["status"])
		}
	}
	return "none"
}

// certificateOwner returns the Certificate's owner as "kind name", or "none".
func certificateOwner(namespace, name string) string {
	GinkgoHelper()
	o := metav1.GetControllerOf(get(certificate(namespace, name)))
	if o == nil {
		return "none"
	}
	return o.Kind + " " + o.Name
}

// renew requests a new certificate like `cmctl renew`, and waits for it.
func renew(namespace, name string) {
	GinkgoHelper()
	before, old := revision(namespace, name), storedCertificate(namespace, name)
	c := get(certificate(namespace, name))
	conditions, _, err := unstructured.NestedSlice(c.Object, "status", "conditions")
	Expect(err).NotTo(HaveOccurred())
	Expect(unstructured.SetNestedSlice(c.Object, append(conditions, map[string]any{
		"type": "Issuing", "status": "True", "reason": "ManuallyTriggered",
		"message": "Certificate re-issuance manually triggered", "observedGeneration": c.GetGeneration(),
	}), "status", "conditions")).To(Succeed())
	Expect(kube.Status().Update(context.Background(), c)).To(Succeed())
	Eventually(revision).WithArguments(namespace, name).Should(Equal(before + 1))
	Expect(storedCertificate(namespace, name).SerialNumber).NotTo(Equal(old.SerialNumber))
}
