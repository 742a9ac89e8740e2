package node

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// mounts are the mounts of a container, with the longest mount path first.
type mounts []mount

// mount maps a mount path in the container to the real path of the volume.
type mount struct{ containerPath, hostPath string }

// prepareVolumes writes the container's volumes and returns its mounts. The volumes
// are not updated until the container restarts.
func (c *container) prepareVolumes(ctx context.Context) (mounts, error) {
	if err := os.MkdirAll(c.pod.dir(), 0o700); err != nil {
		return nil, err
	}
	var all mounts
	for _, m := range c.spec.VolumeMounts {
		i := slices.IndexFunc(c.pod.object.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if i < 0 {
			return nil, configError("volume %s not found", m.Name)
		}
		dir := filepath.Join(c.pod.dir(), "volumes", m.Name)
		if err := c.pod.writeVolume(ctx, c.pod.object.Spec.Volumes[i], dir); err != nil {
			return nil, err
		}
		if path := strings.TrimRight(m.MountPath, "/"); path != "" {
			all = append(all, mount{containerPath: path, hostPath: filepath.Join(dir, m.SubPath)})
		}
	}
	slices.SortFunc(all, func(a, b mount) int { return cmp.Compare(len(b.containerPath), len(a.containerPath)) })
	return all, nil
}

// writeVolume writes the files of a volume to dir.
func (p *pod) writeVolume(ctx context.Context, v corev1.Volume, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	switch {
	case v.EmptyDir != nil, v.Projected != nil:
		return nil
	case v.Secret != nil:
		data, err := p.secret(ctx, v.Secret.SecretName, v.Secret.Optional)
		if err != nil {
			return err
		}
		return writeFiles(dir, data, v.Secret.Items, ptr.Deref(v.Secret.Optional, false))
	case v.ConfigMap != nil:
		data, err := p.configMap(ctx, v.ConfigMap.Name, v.ConfigMap.Optional)
		if err != nil {
			return err
		}
		return writeFiles(dir, data, v.ConfigMap.Items, ptr.Deref(v.ConfigMap.Optional, false))
	default:
		return configError("volume %s has a kind that the node does not support", v.Name)
	}
}

// writeFiles writes the items to dir, or all data if there are no items.
func writeFiles(dir string, data map[string][]byte, items []corev1.KeyToPath, optional bool) error {
	if len(items) == 0 {
		for key := range data {
			items = append(items, corev1.KeyToPath{Key: key, Path: key})
		}
	}
	for _, item := range items {
		content, ok := data[item.Key]
		if !ok && optional {
			continue
		} else if !ok {
			return configError("references non-existent key: %s", item.Key)
		}
		if err := replaceFile(filepath.Join(dir, filepath.FromSlash(item.Path)), content); err != nil {
			return err
		}
	}
	return nil
}

// replaceFile replaces the file atomically, because another container may be
// reading it.
func replaceFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// rewrite replaces the mount path by the real path in each path of the text. A path
// begins only after a character that cannot be part of a path: the "/etc" in
// "https://example.com/etc" is not the beginning of a path.
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

// matchAt returns the mount whose mount path begins at index i of the text, or nil.
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

// isPathCharacter reports whether the character can be part of a path. All other
// characters separate paths: "a=/b", "/a:/b", "/a,/b".
func isPathCharacter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("/._-", c) >= 0
}
