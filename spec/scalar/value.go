package scalar

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

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

// ParseIntOrPercent reads "3" or "25%".
func ParseIntOrPercent(s string) (IntOrPercent, error) {
	digits, percent := strings.CutSuffix(s, "%")
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil {
		return IntOrPercent{}, Hint(Quote(s)+" is neither a number nor a percentage", `write 1 or "25%"`)
	}
	return IntOrPercent{Percent: percent, Number: int32(n)}, nil
}

// ScaledDown is the number itself, or that percentage of total rounded down.
func (v IntOrPercent) ScaledDown(total int) int {
	if !v.Percent {
		return int(v.Number)
	}
	return int(int64(total) * int64(v.Number) / 100)
}

// ScaledUp is the number itself, or that percentage of total rounded up.
func (v IntOrPercent) ScaledUp(total int) int {
	if !v.Percent {
		return int(v.Number)
	}
	return int((int64(total)*int64(v.Number) + 99) / 100)
}

// String is "3" or "25%".
func (v IntOrPercent) String() string {
	s := strconv.Itoa(int(v.Number))
	if v.Percent {
		s += "%"
	}
	return s
}

// MarshalJSON writes a number, or the percentage as text.
func (v IntOrPercent) MarshalJSON() ([]byte, error) {
	if v.Percent {
		return json.Marshal(v.String())
	}
	return json.Marshal(v.Number)
}

// UnmarshalJSON reads a number or a percentage.
func (v *IntOrPercent) UnmarshalJSON(b []byte) error { return Unmarshal(b, v) }

// FromLiteral implements Value.
func (v *IntOrPercent) FromLiteral(l Literal) (err error) {
	if l.Kind == TextLiteral && !strings.HasSuffix(l.Text, "%") {
		return Hint(Quote(l.Text)+" is text, not a number or percentage", `write 1 or "25%"`)
	}
	*v, err = ParseIntOrPercent(l.Text)
	return err
}

// Duration is a time span as Go writes it: "90s", "5m".
type Duration struct{ time.Duration }

// ParseDuration reads a time span such as "90s", "5m" or "1h30m".
func ParseDuration(s string) (Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		fix := "write a time with its unit, as in 90s, 5m, 1h30m"
		if _, err := strconv.ParseInt(s, 10, 32); err == nil {
			fix = "write " + s + "s"
		}
		return Duration{}, Hint(Quote(s)+" is not a duration", fix)
	}
	return Duration{d}, nil
}

// String is the shortest form: "5m", not "5m0s".
func (d Duration) String() string {
	s := d.Duration.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalJSON writes the text form.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads the text form.
func (d *Duration) UnmarshalJSON(b []byte) error { return Unmarshal(b, d) }

// FromLiteral implements Value.
func (d *Duration) FromLiteral(l Literal) (err error) {
	*d, err = ParseDuration(l.Text)
	return err
}

// PortRef is a port number (1..65535), or the name of a container port.
type PortRef struct {
	Number int32
	Name   string
}

// portName is an IANA service name; it must hold a letter besides (see ValidPortName).
var portName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,13}[a-z0-9])?$`)

// ValidPortName reports whether s may name a port.
func ValidPortName(s string) bool {
	return portName.MatchString(s) && !strings.Contains(s, "--") && strings.ContainsAny(s, "abcdefghijklmnopqrstuvwxyz")
}

// String is the number or the name.
func (p PortRef) String() string {
	if p.Name != "" {
		return p.Name
	}
	return strconv.Itoa(int(p.Number))
}

// MarshalJSON writes a number, or the name as text.
func (p PortRef) MarshalJSON() ([]byte, error) {
	if p.Name != "" {
		return json.Marshal(p.Name)
	}
	return json.Marshal(p.Number)
}

// UnmarshalJSON reads a number or a name. The number 0, which the zero PortRef
// writes, is read back as such.
func (p *PortRef) UnmarshalJSON(b []byte) error {
	if string(b) == "0" {
		*p = PortRef{}
		return nil
	}
	return Unmarshal(b, p)
}

// FromLiteral implements Value.
func (p *PortRef) FromLiteral(l Literal) error {
	switch n, err := strconv.ParseInt(l.Text, 10, 64); {
	case err == nil && l.Kind == TextLiteral:
		return Hint(Quote(l.Text)+" is text, not a number", "write it without quotes: "+l.Text)
	case err == nil && (n < 1 || n > 65535):
		return Hint(l.Text+" is not a port number", "write 1 to 65535")
	case err == nil:
		*p = PortRef{Number: int32(n)}
	case !ValidPortName(l.Text):
		return Hint(Quote(l.Text)+" is neither a port's number nor its name",
			"a name has at most 15 of a-z, 0-9 and -, with a letter among them")
	default:
		*p = PortRef{Name: l.Text}
	}
	return nil
}

// Bytes is base64 in YAML and JSON.
type Bytes []byte

// String tells the size only: the content may be secret.
func (b Bytes) String() string { return fmt.Sprintf("%d bytes", len(b)) }

// MarshalJSON writes base64.
func (b Bytes) MarshalJSON() ([]byte, error) {
	return json.Marshal(base64.StdEncoding.EncodeToString(b))
}

// UnmarshalJSON reads base64.
func (b *Bytes) UnmarshalJSON(j []byte) error { return Unmarshal(j, b) }

// FromLiteral implements Value: it reads standard base64; white space in it is ignored. The
// error does not show the text, which may be secret.
func (b *Bytes) FromLiteral(l Literal) error {
	content, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(l.Text), ""))
	if err != nil {
		return Hint("the value is not base64", "encode it with base64, or use stringData or data for plain text")
	}
	*b = content
	return nil
}
