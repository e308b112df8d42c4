// Package e2e tests Stead with real parts: the stead binary, containerd, etcd,
// network namespaces as hosts, dig. Its tests need root and STEAD_ROOT_TESTS=1;
// each runs in a Lab, which leaves the machine as it found it.
package e2e
