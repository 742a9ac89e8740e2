package node

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// volumes are the Pod volumes that have been written.
type volumes struct {
	turn    chan struct{}                // has an element unless a goroutine writes a volume
	written map[string]map[string][]byte // files by volume and path; only for the goroutine that writes
}

func newVolumes() volumes {
	v := volumes{turn: make(chan struct{}, 1), written: map[string]map[string][]byte{}}
	v.turn <- struct{}{}
	return v
}

func (p *pod) volumeDir(name string) string { return filepath.Join(p.dir(), "volumes", name) }

// writeVolume writes the volume's current files.
func (p *pod) writeVolume(ctx context.Context, v corev1.Volume) error {
	select {
	case <-p.volumes.turn:
		defer func() { p.volumes.turn <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return p.writeVolumeInTurn(ctx, v)
}

func (p *pod) writeVolumeInTurn(ctx context.Context, v corev1.Volume) error {
	files, err := p.volumeFiles(ctx, v)
	if err != nil {
		return err
	}
	dir := p.volumeDir(v.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	before, ok := p.volumes.written[v.Name]
	if v.EmptyDir != nil || ok && maps.EqualFunc(before, files, bytes.Equal) {
		return nil
	}
	if err := replaceFiles(dir, files); err != nil {
		return err
	}
	p.volumes.written[v.Name] = files
	return nil
}

// updateVolumes writes the volumes that contain an object that has changed. A volume
// keeps its files if an object no longer exists, as with the kubelet.
func (p *pod) updateVolumes(ctx context.Context) error {
	if !p.outdated.CompareAndSwap(true, false) {
		return nil
	}
	select {
	case <-p.volumes.turn:
		defer func() { p.volumes.turn <- struct{}{} }()
	case <-p.killed.Done():
		return nil
	}
	for _, v := range p.object.Spec.Volumes {
		if _, ok := p.volumes.written[v.Name]; !ok {
			continue // no container has mounted it yet
		}
		if err := p.writeVolumeInTurn(ctx, v); err != nil {
			p.outdated.Store(true) // the reconcile is retried
			return err
		}
	}
	return nil
}

// podsThatMount marks the running Pods' volumes that refer to the Secret or the ConfigMap
// as outdated, and returns requests for these Pods.
func (n *Node) podsThatMount(_ context.Context, object client.Object) []reconcile.Request {
	_, secret := object.(*corev1.Secret)
	n.mu.Lock()
	defer n.mu.Unlock()
	var requests []reconcile.Request
	for _, p := range n.pods {
		if p.object.Namespace != object.GetNamespace() {
			continue
		}
		if slices.ContainsFunc(p.object.Spec.Volumes, func(v corev1.Volume) bool { return refersTo(v, secret, object.GetName()) }) {
			p.outdated.Store(true)
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p.object)})
		}
	}
	return requests
}

// refersTo reports whether the volume contains the Secret, or else the ConfigMap, with
// that name.
func refersTo(v corev1.Volume, secret bool, name string) bool {
	return slices.ContainsFunc(sources(v), func(s corev1.VolumeProjection) bool {
		return secret && s.Secret != nil && s.Secret.Name == name || !secret && s.ConfigMap != nil && s.ConfigMap.Name == name
	})
}

func sources(v corev1.Volume) []corev1.VolumeProjection {
	switch {
	case v.Projected != nil:
		return v.Projected.Sources
	case v.Secret != nil:
		return []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: v.Secret.SecretName}, Items: v.Secret.Items, Optional: v.Secret.Optional,
		}}}
	case v.ConfigMap != nil:
		return []corev1.VolumeProjection{{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: v.ConfigMap.LocalObjectReference, Items: v.ConfigMap.Items, Optional: v.ConfigMap.Optional,
		}}}
	default:
		return nil
	}
}

// volumeFiles returns a volume's files by path. For a projected volume, it returns only
// files from Secrets and ConfigMaps.
func (p *pod) volumeFiles(ctx context.Context, v corev1.Volume) (map[string][]byte, error) {
	if v.EmptyDir == nil && v.Projected == nil && v.Secret == nil && v.ConfigMap == nil {
		return nil, configError("volume %s has a kind that the node does not support", v.Name)
	}
	files := map[string][]byte{}
	for _, s := range sources(v) {
		var data map[string][]byte
		var items []corev1.KeyToPath
		var optional *bool
		var err error
		switch {
		case s.Secret != nil:
			items, optional = s.Secret.Items, s.Secret.Optional
			data, err = p.secret(ctx, s.Secret.Name, optional)
		case s.ConfigMap != nil:
			items, optional = s.ConfigMap.Items, s.ConfigMap.Optional
			data, err = p.configMap(ctx, s.ConfigMap.Name, optional)
		}
		if err == nil {
			err = selectItems(files, data, items, ptr.Deref(optional, false))
		}
		if err != nil {
			return nil, err
		}
	}
	mounts := p.mountsBeside(v.Name)
	for path, content := range files {
		if strings.HasSuffix(path, ".yaml") {
			files[path] = []byte(mounts.rewrite(string(content)))
		}
	}
	return files, nil
}

// selectItems adds the items to the files, or all data if there are no items.
func selectItems(files, data map[string][]byte, items []corev1.KeyToPath, optional bool) error {
	if len(items) == 0 {
		maps.Copy(files, data)
	}
	for _, item := range items {
		content, ok := data[item.Key]
		if ok {
			files[item.Path] = content
		} else if !optional {
			return configError("references non-existent key: %s", item.Key)
		}
	}
	return nil
}

// The names that the kubelet uses in a volume's directory.
const (
	dataLink    = "..data"
	newDataLink = "..data_tmp"
	dataDir     = "..files-"
)

// replaceFiles replaces all files in the directory at once, as the kubelet does: the
// files are in a new directory, to which the link ..data leads, and each file in the
// volume is a link by way of ..data. Programs detect the change by watching for ..data to
// be renamed.
func replaceFiles(dir string, files map[string][]byte) error {
	before, err := os.Readlink(filepath.Join(dir, dataLink))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	now, err := os.MkdirTemp(dir, dataDir)
	if err != nil {
		return err
	}
	for path, content := range files {
		path = filepath.Join(now, filepath.FromSlash(path))
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600)) // #nosec G703 -- the API server validates paths
		if err != nil {
			return err
		}
	}
	newLink := filepath.Join(dir, newDataLink)
	if err := errors.Join(os.Symlink(filepath.Base(now), newLink), os.Rename(newLink, filepath.Join(dir, dataLink))); err != nil {
		return err
	}
	if err := linkFiles(dir, files); err != nil || before == "" {
		return err
	}
	return os.RemoveAll(filepath.Join(dir, before))
}

// linkFiles creates a link for the first element of each path, and removes other links.
func linkFiles(dir string, files map[string][]byte) error {
	wanted := map[string]bool{}
	for path := range files {
		name, _, _ := strings.Cut(path, "/")
		wanted[name] = true
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name := e.Name(); !wanted[name] && !strings.HasPrefix(name, "..") {
			err = errors.Join(err, os.Remove(filepath.Join(dir, name)))
		}
		delete(wanted, e.Name())
	}
	for name := range wanted {
		err = errors.Join(err, os.Symlink(filepath.Join(dataLink, name), filepath.Join(dir, name)))
	}
	return err
}
