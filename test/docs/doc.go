// Package docs checks what the pages say against the repository: that every link
// leads somewhere, that every command could be typed as it stands there, that a
// manifest that is shown is a file, that a command prints what stands below it,
// and that the boxes and arrows of the architecture are the packages and their
// imports. What a page is about is tested where it is made; only the page belongs
// here.
package docs
