//go:build !race

package sim

const quick = false
