// Package manifest reads and checks manifests: YAML in, objects or problems out.
//
// What it promises:
//
//   - Parse is strict. It refuses a field that it does not know, one that is not
//     supported yet, and a value of another type. The struct tag `stead` on the fields
//     of package spec says which is which (see there).
//   - Parse reports all problems at once, up to a bound for each source, in the order of
//     their lines: file, line, column and path, what is wrong, and mostly what to write
//     instead. With any problem nothing of the objects may be used.
//   - Without a problem all objects are valid and have their namespace and defaults.
//   - Any content is answered quickly, without a panic and in bounded memory: the size of
//     a source, its documents, its nesting and what its aliases stand for are bounded.
//   - No problem shows a value of a Secret.
//   - Text that JSONToYAML writes is read back as the same text, also by readers of YAML 1.1.
//
// It imports spec only and does no I/O. It is the only package that imports a YAML library,
// and agents and DNS do not link it (test/arch/law_test.go).
package manifest
