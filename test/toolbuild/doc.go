// Package toolbuild builds what the tests run besides the product from source,
// once per machine: no prebuilt binary is downloaded.
//
// A nested module without code pins each set of programs, so that their
// requirements and the product's do not influence each other. How a program is
// started is its users' business.
package toolbuild
