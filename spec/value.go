package spec

import "time"

// Quantity is an amount as Kubernetes writes it ("500m", "1Gi", "2"), kept in
// thousandths so that cpu and bytes share a type. Range: ±9223372036854775 units.
// It marshals to its canonical text.
type Quantity struct{ Milli int64 }

// Value is the amount in whole units, rounded up (bytes for memory and storage).
func (q Quantity) Value() int64 {
	v := q.Milli / 1000
	if q.Milli%1000 > 0 {
		v++
	}
	return v
}

// IntOrPercent is a number or a percentage such as "25%".
type IntOrPercent struct {
	Percent bool
	Number  int32
}

// Duration is a time span as Go writes it: "90s", "5m".
type Duration struct{ time.Duration }

// PortRef is a port number (1..65535), or the name of a container port.
type PortRef struct {
	Number int32
	Name   string
}
