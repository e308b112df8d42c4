// Package proto holds the gRPC contracts: control.proto for people, agent.proto
// for nodes, types.proto shared. Generated files are committed; make proto makes
// them anew. Fields are only added.
package proto
