// Package backup makes, keeps and opens backups of the store. A backup is one file: a line that says what it is, a
// line of JSON (Manifest), the snapshot of the store as etcd writes it, and the SHA-256 of all before. With
// recipients, the snapshot and the key that opens what is sealed in it (seal) are encrypted for them; a file that is
// not encrypted never has that key in it.
//
// A Maker makes one; a Schedule has them made on time, and removes old ones. rules.go is PURE: when, and which.
// Reading begins in file.go.
package backup
