package node_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestPodWaitsForItsSecretAndGetsItsConfiguration(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	pod := echo(ns, "echo", configure)
	create(t, pod, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "settings"}, Data: map[string]string{"colour": "blue"},
	})
	eventually(t, pod, func(g Gomega) {
		g.Expect(pod.Status.ContainerStatuses).To(HaveLen(1))
		waiting := pod.Status.ContainerStatuses[0].State.Waiting
		g.Expect(waiting).NotTo(BeNil())
		g.Expect(waiting.Reason).To(Equal("CreateContainerConfigError"))
		g.Expect(waiting.Message).To(Equal(`secret "credentials" not found`))
	})
	create(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "credentials"}, StringData: map[string]string{"token": "abc"},
	})
	eventuallyReady(t, pod)
	for path, want := range map[string]string{
		"/args":                    "[first --name echo $(NONE)]",
		"/env?variable=NAME":       "echo." + ns,
		"/env?variable=UID":        string(pod.UID),
		"/env?variable=IP":         pod.Status.PodIP,
		"/env?variable=APP":        "echo",
		"/env?variable=MEMORY":     "100",
		"/env?variable=CPUS":       "2", // rounded up
		"/env?variable=TOKEN":      "abc",
		"/env?variable=COLOUR":     "blue",
		"/env?variable=ALL_colour": "blue",
		"/env?variable=OPTIONAL":   "",
		"/file?variable=SECRET":    "abc",
		"/file?variable=SETTINGS":  "blue",
	} {
		if got := getFromPod(t, pod, path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

func TestVolumeFollowsItsSecretAndConfigMap(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "credentials"}, StringData: map[string]string{"token": "old"},
	}
	settings := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "settings"}, Data: map[string]string{"colour": "blue"},
	}
	pod := echo(ns, "echo", configure)
	pod.Spec.Volumes[1].VolumeSource = corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
	}}}
	create(t, secret, settings, pod)
	eventuallyReady(t, pod)
	secret.StringData = map[string]string{"token": "new"}
	settings.Data["colour"] = "red"
	for _, object := range []client.Object{secret, settings} {
		if err := kube.Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	g := NewWithT(t)
	g.Eventually(getFromPod, timeout).WithArguments(t, pod, "/file?variable=SECRET").Should(Equal("new"))
	g.Eventually(getFromPod, timeout).WithArguments(t, pod, "/file?variable=SETTINGS").Should(Equal("red"))
	g.Expect(kube.Delete(t.Context(), secret)).To(Succeed())
	g.Consistently(getFromPod, "300ms").WithArguments(t, pod, "/file?variable=SECRET").Should(Equal("new"))
}

// configure makes the container refer to the Secret and the ConfigMap in every way
// that the node supports.
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
		{Name: "MEMORY", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{
			ContainerName: container.Name, Resource: "limits.memory", Divisor: resource.MustParse("1Mi"),
		}}},
		{Name: "CPUS", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "requests.cpu"}}},
		{Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: secret, Key: "token"}}},
		{Name: "COLOUR", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: settings, Key: "colour"}}},
		{Name: "OPTIONAL", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: settings, Key: "none", Optional: new(true),
		}}},
		{Name: "SECRET", Value: "/etc/credentials/deep/t"},
		{Name: "SETTINGS", Value: "/etc/settings/colour"},
	}
	container.Resources = corev1.ResourceRequirements{
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("100Mi")},
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")},
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
