// Package previous tests that this release takes over what the release before it left: testdata holds the store of a small
// cluster, and what an agent keeps on its disk and beside its running members. scripts/previous --golden makes them.
package previous
