package scalar

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestValuesComeBackFromJSON(t *testing.T) {
	type values struct {
		Q Quantity     `json:"q"`
		I IntOrPercent `json:"i"`
		P IntOrPercent `json:"p"`
		D Duration     `json:"d"`
		N PortRef      `json:"n"`
		M PortRef      `json:"m"`
		Z PortRef      `json:"z"`
		B Bytes        `json:"b"`
	}
	want := `{"q":"1Gi","i":3,"p":"25%","d":"5m","n":2379,"m":"client","z":0,"b":"aGkA"}`
	in := values{
		Q: Quantity{1 << 30 * 1000}, I: IntOrPercent{Number: 3}, P: IntOrPercent{Percent: true, Number: 25},
		D: Duration{5 * time.Minute}, N: PortRef{Number: 2379}, M: PortRef{Name: "client"}, B: Bytes("hi\x00"),
	}
	b, err := json.Marshal(in)
	if err != nil || string(b) != want {
		t.Fatalf("got %s %v, want %s", b, err, want)
	}
	var back values
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(back)
	if err != nil || string(again) != want {
		t.Fatalf("got %s %v, want %s", again, err, want)
	}
}

func TestScaledDownRoundsDown(t *testing.T) {
	tests := []struct {
		name  string
		v     IntOrPercent
		total int
		want  int
	}{
		{"a number is itself", IntOrPercent{Number: 7}, 3, 7},
		{"a percentage of a multiple", IntOrPercent{true, 25}, 8, 2},
		{"a percentage rounds down", IntOrPercent{true, 34}, 5, 1},
		{"a small percentage is nothing", IntOrPercent{true, 10}, 5, 0},
		{"no overflow", IntOrPercent{true, 100}, 1 << 31, 1 << 31},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.v.ScaledDown(tt.total); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

func TestValuesRefuse(t *testing.T) {
	tests := []struct {
		name string
		into json.Unmarshaler
		text string
		want string
	}{
		{"a number as text", &IntOrPercent{}, `"3"`, `"3" is text, not a number or percentage; write 1 or "25%"`},
		{"half a percentage", &IntOrPercent{}, `"%"`, `"%" is neither a number nor a percentage; write 1 or "25%"`},
		{"a time without unit", &Duration{}, `90`, `"90" is not a duration; write 90s`},
		{"a time in words", &Duration{}, `"soon"`, `"soon" is not a duration; write a time with its unit, as in 90s, 5m, 1h30m`},
		{"a port that is too high", &PortRef{}, `70000`, `70000 is not a port number; write 1 to 65535`},
		{"a port in quotes", &PortRef{}, `"80"`, `"80" is text, not a number; write it without quotes: 80`},
		{"a port name with a capital", &PortRef{}, `"HTTP"`,
			`"HTTP" is neither a port's number nor its name; a name has at most 15 of a-z, 0-9 and -, with a letter among them`},
		{"no base64", &Bytes{}, `"hunter2!"`,
			`the value is not base64; encode it with base64, or use stringData or data for plain text`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.into.UnmarshalJSON([]byte(tt.text))
			if err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestDurationText(t *testing.T) {
	for text, want := range map[string]string{"90s": "1m30s", "5m": "5m", "60m": "1h", "1h30m": "1h30m", "10s": "10s", "0s": "0s"} {
		d, err := ParseDuration(text)
		if err != nil || d.String() != want {
			t.Errorf("%s: got %q %v, want %q", text, d, err, want)
		}
	}
}

func TestBytesIgnoreLineBreaks(t *testing.T) {
	var b Bytes
	err := b.FromLiteral(Literal{Text: "aGVs\n  bG8=\n"})
	if err != nil || string(b) != "hello" {
		t.Errorf("got %q %v", []byte(b), err)
	}
}

func TestBytesAreNeverPrinted(t *testing.T) {
	if s := Bytes("hunter2").String(); strings.Contains(s, "hunter2") || s != "7 bytes" {
		t.Errorf("got %q", s)
	}
}
