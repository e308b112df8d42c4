// Package host is what one machine gives to its members: containerd, network, volumes and DNS,
// set up from the options of 'stead agent', looked after, and taken back (Purge).
package host
