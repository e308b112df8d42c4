package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/scalar"
)

// volumeLong explains the verb ls of volumes.
const volumeLong = `List the volumes, including those that no member uses. USED is what the files of a volume
take on its disk, LEFT what can still be written there. The nodes are asked for both now, and
nothing of it is stored: LEFT is of this moment, USED as the node measured it last (-o json
says when; a node measures slowly, so that no member waits for it, and for the first time
some minutes after its agent started).`

// useTime is how long the nodes may take to say how full volumes are: without it the rest is shown.
const useTime = 5 * time.Second

// addUse asks the nodes how full volumes are, and adds that to their status. What is not said is left out.
func (c *cli) addUse(ctx context.Context, volumes []*proto.Object, errOut io.Writer) error {
	if len(volumes) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, useTime)
	defer cancel()
	got, err := c.control.Usage(ctx, &proto.UsageRequest{Volumes: true})
	if err != nil {
		fmt.Fprintf(errOut, "warning: how full the volumes are is not known: %s\n", explainError(err))
		return nil
	}
	uses := map[[2]string]*records.ShownUse{} // by node and volume: a node speaks of its own only
	for _, n := range got.GetNodes() {
		if n.GetError() != "" {
			fmt.Fprintf(errOut, "warning: how full the volumes of node %s are is not known: %s\n", n.GetNode(), scalar.Plain(n.GetError()))
		}
		for _, u := range n.GetVolumes() {
			uses[[2]string{n.GetNode(), u.GetVolume()}] = useOf(u)
		}
	}
	for _, o := range volumes {
		v, err := decode[records.Volume, records.ShownVolume](o)
		if err != nil {
			return err
		}
		v.Status.Use = uses[[2]string{string(v.Spec.Node), string(v.Spec.UID)}]
		if v.Status.Use == nil {
			continue
		}
		if p := v.Status.Use.Problem; p != "" {
			fmt.Fprintf(errOut, "warning: node %s: %s\n", v.Spec.Node, p)
		}
		if o.Json, err = withUse(o.GetJson(), v.Status.Use); err != nil {
			return err
		}
	}
	return nil
}

// withUse is the document of a volume with a field added to its status; all else stays as it is.
func withUse(doc []byte, use *records.ShownUse) ([]byte, error) {
	var whole struct {
		Status json.RawMessage `json:"status"`
	}
	if err := json.Unmarshal(doc, &whole); err != nil {
		return nil, err
	}
	status, err := merged(whole.Status, map[string]any{"use": use})
	if err != nil {
		return nil, err
	}
	return merged(doc, map[string]any{"status": json.RawMessage(status)})
}

func useOf(u *proto.VolumeUsage) *records.ShownUse {
	known := func(bytes int64) *int64 {
		if bytes < 0 {
			return nil
		}
		return &bytes
	}
	use := &records.ShownUse{UsedBytes: known(u.GetUsedBytes()), FreeBytes: known(u.GetFreeBytes()), TotalBytes: known(u.GetTotalBytes()), Problem: scalar.Plain(u.GetProblem())}
	if use.UsedBytes != nil {
		use.MeasuredSecondsAgo = u.GetAgeMillis() / 1000
	}
	return use
}

// usedText is what the files of a volume take; "": not known.
func usedText(u *records.ShownUse) string {
	if u == nil || u.UsedBytes == nil {
		return ""
	}
	return bytesText(*u.UsedBytes)
}

// leftText is what can still be written; "": not known.
func leftText(u *records.ShownUse) string {
	if u == nil || u.FreeBytes == nil {
		return ""
	}
	return bytesText(*u.FreeBytes)
}
