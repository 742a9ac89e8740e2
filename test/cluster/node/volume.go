package node

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// mounts are a container's mounts, with the longest mount path first.
type mounts []mount

// mount maps a mount path in the container to the volume's real path.
type mount struct{ containerPath, hostPath string }

// prepareVolumes writes the container's volumes and returns its mounts.
func (c *container) prepareVolumes(ctx context.Context) (mounts, error) {
	if err := os.MkdirAll(c.pod.dir(), 0o700); err != nil {
		return nil, err
	}
	for _, m := range c.spec.VolumeMounts {
		i := slices.IndexFunc(c.pod.object.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if i < 0 {
			return nil, configError("volume %s not found", m.Name)
		}
		if err := c.pod.writeVolume(ctx, c.pod.object.Spec.Volumes[i]); err != nil {
			return nil, err
		}
	}
	return c.mounts(), nil
}

func (c *container) mounts() mounts {
	var all mounts
	for _, m := range c.spec.VolumeMounts {
		if path := strings.TrimRight(m.MountPath, "/"); path != "" {
			all = append(all, mount{containerPath: path, hostPath: filepath.Join(c.pod.volumeDir(m.Name), m.SubPath)})
		}
	}
	slices.SortFunc(all, func(a, b mount) int { return cmp.Compare(len(b.containerPath), len(a.containerPath)) })
	return all
}

// mountsBeside returns the mounts of the first container that mounts the volume.
func (p *pod) mountsBeside(volume string) mounts {
	for _, c := range p.allContainers() {
		if slices.ContainsFunc(c.spec.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume }) {
			return c.mounts()
		}
	}
	return nil
}

// rewrite replaces the mount path by the real path in each path in the text. A path
// begins only after a character that paths do not contain: the "/etc" in
// "https://example.com/etc" does not begin a path.
func (m mounts) rewrite(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		if found := m.matchAt(text, i); found != nil {
			out.WriteString(found.hostPath)
			i += len(found.containerPath)
			continue
		}
		out.WriteByte(text[i])
		i++
	}
	return out.String()
}

// matchAt returns the mount whose mount path begins at text[i], or nil.
func (m mounts) matchAt(text string, i int) *mount {
	if text[i] != '/' || i > 0 && isPathCharacter(text[i-1]) {
		return nil
	}
	for j := range m {
		rest, ok := strings.CutPrefix(text[i:], m[j].containerPath)
		if ok && (rest == "" || rest[0] == '/' || !isPathCharacter(rest[0])) {
			return &m[j]
		}
	}
	return nil
}

// isPathCharacter reports whether a path can contain the character. All other characters
// separate paths: "a=/b", "/a:/b", "/a,/b".
func isPathCharacter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("/._-", c) >= 0
}
