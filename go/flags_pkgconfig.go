//go:build !forrest_flags

package forrest

// Where libforrest is, pkg-config knows. With the build tag forrest_flags, CGO_CFLAGS and CGO_LDFLAGS say it.

// #cgo pkg-config: forrest
import "C"
