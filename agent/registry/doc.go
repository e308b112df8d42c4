// Package registry knows which credentials a node shows to a registry, by Kubernetes' rules: what
// Secrets for imagePullSecrets contain, and which of it matches the name of an image. It does
// nothing itself: agent/runtime/containerdrt pulls.
package registry
