// Package scalar holds what manifests write as one value (quantities, durations, percentages,
// ports, bytes, names), with the messages for values that are wrong. It imports nothing of ours.
package scalar
