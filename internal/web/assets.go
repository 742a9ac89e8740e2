package web

import (
	"embed"
	"net/http"
	"path"
)

// files are the page's styles and scripts. assets/vendor contains libraries with their
// licenses; SHA256SUMS has the checksums of the files that their authors published.
//
//go:embed assets templates
var files embed.FS

// assetTypes are the assets' media types by file extension. They do
// not depend on the machine's list.
var assetTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// serveAsset serves a file below assets.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	mediaType := assetTypes[path.Ext(name)]
	content, err := files.ReadFile("assets/" + name)
	if err != nil || mediaType == "" {
		refuse(w, http.StatusNotFound, "There is no such file.")
		return
	}
	w.Header().Set("Content-Type", mediaType)
	_, _ = w.Write(content) // #nosec G705 -- an embedded file; the visitor may be gone
}
