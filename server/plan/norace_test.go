//go:build !race

package plan

const quick = false
