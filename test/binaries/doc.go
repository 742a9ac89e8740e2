// Package binaries provides other projects' programs that the tests and the demo run. It
// looks for each program in the environment, in the PATH and in the user's cache
// directory. If it finds none, it downloads or builds the program, once per machine.
//
// If the environment variable PINNED_BINARIES is true, the package ignores the programs
// that are installed on the machine, and downloads none whose version may differ from the
// pinned one. CI sets it.
//
// A nested module without code pins the versions of the programs that are built from
// source, so that the requirements of the programs and of the product do not affect each
// other. A pip requirements file pins the Envoy version.
package binaries
