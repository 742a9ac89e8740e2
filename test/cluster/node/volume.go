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

// mounts are the real paths of a container's volumes, the longest first.
type mounts []mount

type mount struct{ container, real string }

// prepareVolumes writes the container's volumes. What they hold is not changed later on,
// until the container starts again.
func (c *container) prepareVolumes(ctx context.Context) (mounts, error) {
	if err := os.MkdirAll(c.pod.dir(), 0o700); err != nil {
		return nil, err
	}
	var all mounts
	for _, m := range c.spec.VolumeMounts {
		i := slices.IndexFunc(c.pod.object.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if i < 0 {
			return nil, configError("there is no volume %s", m.Name)
		}
		dir := filepath.Join(c.pod.dir(), "volumes", m.Name)
		if err := c.pod.writeVolume(ctx, c.pod.object.Spec.Volumes[i], dir); err != nil {
			return nil, err
		}
		if path := strings.TrimRight(m.MountPath, "/"); path != "" {
			all = append(all, mount{container: path, real: filepath.Join(dir, m.SubPath)})
		}
	}
	slices.SortFunc(all, func(a, b mount) int { return cmp.Compare(len(b.container), len(a.container)) })
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
		return configError("volume %s is of a kind that the node does not know", v.Name)
	}
}

// writeFiles writes the items, or all data if there are none.
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

// replaceFile writes the file at once: another container may be reading it.
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

// rewrite replaces each path at or below a mount path by the real one. A path
// begins where what precedes cannot be part of one: the "/etc" of
// "https://example.com/etc" is none.
func (m mounts) rewrite(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		if at := m.matchAt(text, i); at != nil {
			out.WriteString(at.real)
			i += len(at.container)
			continue
		}
		out.WriteByte(text[i])
		i++
	}
	return out.String()
}

// matchAt returns the mount whose path stands at that place of the text.
func (m mounts) matchAt(text string, i int) *mount {
	if text[i] != '/' || i > 0 && isPathCharacter(text[i-1]) {
		return nil
	}
	for j := range m {
		rest, ok := strings.CutPrefix(text[i:], m[j].container)
		if ok && (rest == "" || rest[0] == '/' || !isPathCharacter(rest[0])) {
			return &m[j]
		}
	}
	return nil
}

// isPathCharacter tells whether a path may have that character within. All others
// separate paths: "a=/b", "/a:/b", "/a,/b".
func isPathCharacter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("/._-", c) >= 0
}
