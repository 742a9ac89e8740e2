package envoy

import (
	"fmt"
	"regexp"
	"strings"
)

// normalizePath returns a path in the form in which Envoy compares paths with the options
// normalize_path and merge_slashes: it decodes escaped unreserved characters, resolves
// the segments "." and "..", and merges repeated slashes. Other escapes stay, with
// upper-case digits.
func normalizePath(path string) (string, error) {
	decoded, err := decodeUnreserved(path)
	if err != nil {
		return "", err
	}
	return resolveSegments(decoded), nil
}

// decodeUnreserved decodes escaped unreserved characters (RFC 3986, section 2.3).
func decodeUnreserved(path string) (string, error) {
	if !strings.Contains(path, "%") {
		return path, nil
	}
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		if path[i] != '%' {
			b.WriteByte(path[i])
			continue
		}
		if i+2 >= len(path) || !isHex(path[i+1]) || !isHex(path[i+2]) {
			return "", fmt.Errorf("path %q with invalid encoding", path)
		}
		switch c := unhex(path[i+1])<<4 | unhex(path[i+2]); {
		case c == 0:
			return "", fmt.Errorf("path %q with the escape %%00, which Envoy rejects", path)
		case isUnreserved(c):
			b.WriteByte(c)
		default:
			b.WriteString(strings.ToUpper(path[i : i+3]))
		}
		i += 2
	}
	return b.String(), nil
}

// resolveSegments resolves the segments "." and ".." (RFC 3986, section 5.2.4), and then
// merges repeated slashes: ".." removes a segment that is empty, too. A trailing slash stays.
func resolveSegments(path string) string {
	if !strings.Contains(path, "//") && !strings.Contains(path, "/.") {
		return path // most paths
	}
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	var kept []string
	for i, segment := range segments {
		switch segment {
		case "..":
			kept = kept[:max(0, len(kept)-1)]
		case ".":
		default:
			kept = append(kept, segment)
			continue
		}
		if i == len(segments)-1 {
			kept = append(kept, "") // a path that ends in a dot segment ends with a slash
		}
	}
	return repeatedSlashes.ReplaceAllString("/"+strings.Join(kept, "/"), "/")
}

var repeatedSlashes = regexp.MustCompile("/{2,}")

// lowerEscapes returns the path with lower-case digits in all escapes.
func lowerEscapes(path string) string {
	if !strings.Contains(path, "%") {
		return path
	}
	b := []byte(path)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i:], strings.ToLower(path[i:i+3]))
			i += 2
		}
	}
	return string(b)
}

func isUnreserved(c byte) bool { return isAlphanumeric(c) || strings.IndexByte("-._~", c) >= 0 }

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'A' <= c && c <= 'F' || 'a' <= c && c <= 'f' }

func unhex(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	default:
		return c - 'a' + 10
	}
}
