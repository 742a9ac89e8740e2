// Package workflows tests the GitHub Actions workflows and the release workflow's
// scripts, as far as this is possible without GitHub and a registry.
package workflows
