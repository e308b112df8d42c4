package proto

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/proto"
)

// A message takes a buffer of its size, however large it is, and comes back as it was.
func TestAMessageTakesABufferOfItsSize(t *testing.T) {
	for _, n := range []int{0, 1, 100, 33 << 10, 1 << 20} {
		message := &ToNode{Kind: &ToNode_Pictures{Pictures: &Pictures{PicturesJson: [][]byte{bytes.Repeat([]byte("x"), n)}}}}
		data, err := exactCodec{}.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		if b := data.Materialize(); data.Len() != proto.Size(message) || cap(data[0].ReadOnlyData()) > data.Len()+data.Len()/8+64 {
			t.Errorf("%d bytes take a buffer of %d", len(b), cap(data[0].ReadOnlyData()))
		}
		back := &ToNode{}
		if err := (exactCodec{}).Unmarshal(data, back); err != nil || !proto.Equal(message, back) {
			t.Errorf("%d bytes came back as %d, %v", n, proto.Size(back), err)
		}
	}
	if _, err := (exactCodec{}).Marshal("text"); err == nil {
		t.Error("what is not a message was marshalled")
	}
	if err := (exactCodec{}).Unmarshal(nil, "text"); err == nil {
		t.Error("what is not a message was unmarshalled")
	}
}
