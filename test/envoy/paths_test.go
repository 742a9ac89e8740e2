package envoy

import "testing"

func TestPaths(t *testing.T) {
	run(t, []row{
		{"GET paths.example.com/exact", "200 one GET /exact"},
		{"GET paths.example.com/exact?q=1", "200 one GET /exact?q=1"},
		{"GET paths.example.com/exact/", "404"},
		{"GET paths.example.com/Exact", "404"},
		{"GET paths.example.com/exact/below", "404"},
		{"GET paths.example.com/prefix", "200 two GET /prefix"},
		{"GET paths.example.com/prefix/", "200 two GET /prefix/"},
		{"GET paths.example.com/prefix/below", "200 two GET /prefix/below"},
		{"GET paths.example.com/prefixed", "404"},
		{"GET paths.example.com/slash", "200 two GET /slash"},
		{"GET paths.example.com/slash/below", "200 two GET /slash/below"},
		{"GET paths.example.com/v1/x", "200 three GET /v1/x"},
		{"GET paths.example.com/v1/x?q=1", "200 three GET /v1/x?q=1"},
		{"GET paths.example.com/below/v1/x", "404"},
		{"GET paths.example.com/vx/", "404"},
		{"GET paths.example.com/a", "200 three GET /a"},
		{"GET paths.example.com/b", "200 three GET /b"},
		{"GET paths.example.com/ab", "404"},
		{"GET paths.example.com/b/a", "404"},
		{"GET paths.example.com/", "404"},
	})
}

func TestPathsAreNormalized(t *testing.T) {
	run(t, []row{
		{"GET paths.example.com//exact", "200 one GET /exact"},
		{"GET paths.example.com/./exact", "200 one GET /exact"},
		{"GET paths.example.com/x/../exact", "200 one GET /exact"},
		{"GET paths.example.com/../exact", "200 one GET /exact"},
		{"GET paths.example.com/prefix/../exact", "200 one GET /exact"},
		{"GET paths.example.com/prefix/..", "404"},
		{"GET paths.example.com/x/.././/./prefix//y/", "200 two GET /prefix/y/"},
		{"GET paths.example.com/%65xact", "200 one GET /exact"},
		{"GET paths.example.com/prefix/%2e%2e/exact", "200 one GET /exact"},
		{"GET paths.example.com/prefix/%2E./exact", "200 one GET /exact"},
		{"GET paths.example.com/prefix%2Fx", "404"},
		{"GET paths.example.com/prefix%2fx", "404"},
		{"GET paths.example.com/abc", "200 five GET /abc"},
		{"GET paths.example.com/%61bc", "200 five GET /abc"},
		{"GET paths.example.com/x%2Fy", "200 five GET /x%2Fy"},
		{"GET paths.example.com/x%2fy", "200 five GET /x%2fy"},
		{"GET paths.example.com/x/y", "404"},
		{"GET paths.example.com/end/", "200 five GET /end/"},
		{"GET paths.example.com/end", "404"},
		{"GET paths.example.com/end/.", "200 five GET /end/"},
		{"GET paths.example.com/end/x/..", "200 five GET /end/"},
		{"GET paths.example.com/caf%C3%A9", "200 four GET /caf%C3%A9"},
		{"GET paths.example.com/caf%c3%a9", "200 four GET /caf%c3%a9"},
		{"GET paths.example.com/men%c3%bc/x", "200 four GET /men%c3%bc/x"},
		{"GET paths.example.com/men%C3%BC", "200 four GET /men%C3%BC"},
		{"GET paths.example.com/params;v=1", "200 five GET /params;v=1"},
		{"GET paths.example.com/params", "404"},
		{"GET paths.example.com/exact;v=1", "404"},
		{"GET paths.example.com/exact%00", "400"},
		{"GET paths.example.com/prefix/%zz", "200 two GET /prefix/%zz"},
		{"GET paths.example.com/prefix/?q=//x/../y", "200 two GET /prefix/?q=//x/../y"},
		{"GET paths.example.com/exact#fragment", "400"},
	})
}

func TestMoreSpecificPathsComeFirst(t *testing.T) {
	run(t, []row{
		{"GET prefixes.example.com/", "200 one GET /"},
		{"GET prefixes.example.com/x", "200 one GET /x"},
		{"GET prefixes.example.com/a", "200 four GET /a"},
		{"GET prefixes.example.com/a/", "200 two GET /a/"},
		{"GET prefixes.example.com/a/b", "200 three GET /a/b"},
		{"GET prefixes.example.com/a/b/c", "200 five GET /a/b/c"},
		{"GET prefixes.example.com/ab", "200 one GET /ab"},
		{"OPTIONS prefixes.example.com/*", "200 one OPTIONS /*"},
	})
}

// TestPathsOfSlashes shows that a path that consists of slashes is the path "/".
func TestPathsOfSlashes(t *testing.T) {
	run(t, []row{
		{"GET slashes.example.com/", "200 one GET /"},
		{"GET slashes.example.com//?a=b", "200 one GET //?a=b"},
		{"GET slashes.example.com///", "200 one GET //"},
		{"GET slashes.example.com//x", "200 two GET /x"},
		{"GET slashes.example.com/x", "200 two GET /x"},
	})
}
