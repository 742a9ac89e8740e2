// Package docs checks the documentation: that every link leads somewhere, and
// that every command could be typed as it stands there.
package docs
