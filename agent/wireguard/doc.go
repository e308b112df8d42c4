// Package wireguard starts and finds the process `stead-tunnel`, which is the WireGuard of a link on hosts whose kernel has none
// (package userspace). It outlives the agent.
package wireguard
