// Package docs tests the documentation against the repository:
//
//   - Every link has an existing target.
//   - Every command in a shell block is valid.
//   - Every manifest on a page is part of a tested file.
//   - Every command prints the output that the page shows.
//   - The architecture diagram matches the packages and their imports, and the page
//     describes every folder.
package docs
