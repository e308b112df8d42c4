package proto

import (
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"
)

func TestSidesThatShareNoProtocolAreRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		mine protocols
		said []string
		want string // part of it; "": they can talk
	}{
		{"of the same release", protocols{1, 1}, []string{"1-1"}, ""},
		{"of the first release, which says nothing", protocols{1, 2}, nil, ""},
		{"a newer side that still speaks ours", protocols{1, 1}, []string{"1-2"}, ""},
		{"an older side whose protocol we still speak", protocols{1, 2}, []string{"1-1"}, ""},
		{"a side that is too new", protocols{1, 2}, []string{"3-4"}, "the caller speaks protocols 3 to 4, and the server only protocols 1 to 2: upgrade the server"},
		{"a side that is too old", protocols{2, 3}, []string{"1-1"}, "the caller speaks protocol 1 only, and the server protocols 2 to 3: upgrade the caller"},
		{"the first release with one that forgot it", protocols{2, 2}, nil, "upgrade the caller"},
		{"no numbers", protocols{1, 1}, []string{"next"}, "not known"},
		{"half a range", protocols{1, 1}, []string{"1"}, "not known"},
		{"a range that runs back", protocols{1, 1}, []string{"2-1"}, "not known"},
		{"zero", protocols{1, 1}, []string{"0-1"}, "not known"},
		{"two answers", protocols{1, 1}, []string{"1-1", "2-2"}, "not known"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := refusal(tt.mine, "server", tt.said, "caller")
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("refusal is %q, want %q", got, tt.want)
			}
		})
	}
}

func TestWhatIsSaidIsRead(t *testing.T) {
	for _, p := range []protocols{{1, 1}, {2, 7}} {
		if got, err := readProtocols(p.metadata().Get(ProtocolKey)); got != p || err != nil {
			t.Errorf("%v is read as %v, %v", p, got, err)
		}
	}
	if err := checkServer(metadata.Pairs(ProtocolKey, "9-9")); err == nil || !strings.Contains(err.Error(), "upgrade the program that calls it") {
		t.Errorf("a server of the far future is taken: %v", err)
	}
}
