// Package records holds what the store keeps and what servers, nodes and members
// exchange: the documents of sets, members, volumes and nodes, and pure functions over
// them. Their JSON is stored and sent: fields are only added, names stay. Imports spec only.
package records
