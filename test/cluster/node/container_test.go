package node_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestConfiguration: a Pod waits for its Secret, and finds then all that its
// specification refers to, where that says it is.
func TestConfiguration(t *testing.T) {
	t.Parallel()
	in := namespace(t)
	pod := echo(in, "echo", configure)
	create(t, pod, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "settings"}, Data: map[string]string{"colour": "blue"},
	})
	eventually(t, pod, func(g Gomega) {
		g.Expect(pod.Status.ContainerStatuses).To(HaveLen(1))
		waits := pod.Status.ContainerStatuses[0].State.Waiting
		g.Expect(waits).NotTo(BeNil())
		g.Expect(waits.Reason).To(Equal("CreateContainerConfigError"))
		g.Expect(waits.Message).To(Equal(`secret "credentials" not found`))
	})
	create(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "credentials"}, StringData: map[string]string{"token": "abc"},
	})
	eventuallyReady(t, pod)
	for path, want := range map[string]string{
		"/args":              "[first --name echo $(NONE)]",
		"/env?of=NAME":       "echo." + in,
		"/env?of=UID":        string(pod.UID),
		"/env?of=IP":         pod.Status.PodIP,
		"/env?of=APP":        "echo",
		"/env?of=TOKEN":      "abc",
		"/env?of=COLOUR":     "blue",
		"/env?of=ALL_colour": "blue",
		"/env?of=OPTIONAL":   "",
		"/file?of=SECRET":    "abc",
		"/file?of=SETTINGS":  "blue",
	} {
		if got := ask(t, pod, path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

// configure has the container refer to the Secret and the ConfigMap in all
// ways there are.
func configure(p *corev1.Pod) {
	secret, settings := corev1.LocalObjectReference{Name: "credentials"}, corev1.LocalObjectReference{Name: "settings"}
	field := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	container := &p.Spec.Containers[0]
	container.Args = []string{"--name", "$(POD)", "$$(NONE)"}
	container.EnvFrom = []corev1.EnvFromSource{{Prefix: "ALL_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: settings}}}
	container.Env = []corev1.EnvVar{
		{Name: "POD", ValueFrom: field("metadata.name")},
		{Name: "IN", ValueFrom: field("metadata.namespace")},
		{Name: "NAME", Value: "$(POD).$(IN)"},
		{Name: "UID", ValueFrom: field("metadata.uid")},
		{Name: "IP", ValueFrom: field("status.podIP")},
		{Name: "APP", ValueFrom: field("metadata.labels['app']")},
		{Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: secret, Key: "token"}}},
		{Name: "COLOUR", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: settings, Key: "colour"}}},
		{Name: "OPTIONAL", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: settings, Key: "none", Optional: new(true),
		}}},
		{Name: "SECRET", Value: "/etc/credentials/deep/t"},
		{Name: "SETTINGS", Value: "/etc/settings/colour"},
	}
	container.VolumeMounts = []corev1.VolumeMount{
		{Name: "credentials", MountPath: "/etc/credentials"}, {Name: "settings", MountPath: "/etc/settings/"},
	}
	p.Spec.Volumes = []corev1.Volume{
		{Name: "credentials", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: secret.Name, Items: []corev1.KeyToPath{{Key: "token", Path: "deep/t"}},
		}}},
		{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: settings}}},
	}
}
