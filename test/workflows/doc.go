// Package workflows tests the workflows of GitHub Actions and the scripts of the
// release workflow, as far as this is possible without GitHub and a registry.
package workflows
