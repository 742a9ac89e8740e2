// Package toolbuild builds the other programs that the tests run from source, once
// per machine. It downloads no prebuilt binaries.
//
// A nested module without code pins the versions of each set of programs, so that
// the requirements of the programs and of the product do not affect each other.
package toolbuild
