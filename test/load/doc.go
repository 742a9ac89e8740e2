// Package load sends requests to a server at a steady rate and keeps WebSockets and
// streams open, while a test causes a fault. It counts the requests that fail, and the
// WebSockets and streams that break. [Backend] is the server that responds to them.
package load
