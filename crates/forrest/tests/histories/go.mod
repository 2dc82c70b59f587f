module forrest.invalid/histories

go 1.22

// The checker: it is kept, tested, and used by etcd. MIT.
require github.com/anishathalye/porcupine v1.3.1
