package node

import (
	"maps"
	"slices"
	"strings"
)

// repository returns an image name without its tag, its digest and docker.io.
func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
		image = image[:i] // a colon before a slash precedes the registry's port
	}
	image = strings.TrimPrefix(image, "docker.io/")
	return strings.TrimPrefix(image, "library/")
}

// image returns the program for a container image.
func (n *Node) image(name string) (Image, error) {
	image, ok := n.images[repository(name)]
	if !ok {
		supported := strings.Join(slices.Sorted(maps.Keys(n.images)), ", ")
		return Image{}, &waitingError{"ErrImagePull", "the node has no program for " + repository(name) + ", only for: " + supported}
	}
	return image, nil
}

func sortedPorts(image Image) []int32 { return slices.Sorted(maps.Keys(image.Ports)) }
