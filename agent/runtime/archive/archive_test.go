package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/archive"
)

const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	indexType    = "application/vnd.oci.image.index.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar"
)

type object = map[string]any

// file is one file of a tar.
type file struct {
	name string
	text []byte
}

func tarOf(t testing.TB, files ...file) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(f.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func jsonOf(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func gzipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zstdOf(t testing.TB, b []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return w.EncodeAll(b, nil)
}

// oci puts an OCI archive together.
type oci struct {
	t     testing.TB
	files []file
}

func (o *oci) blob(media string, content []byte) object {
	sum := sha256.Sum256(content)
	digest := hex.EncodeToString(sum[:])
	o.files = append(o.files, file{"blobs/sha256/" + digest, content})
	return object{"mediaType": media, "digest": "sha256:" + digest, "size": len(content)}
}

func (o *oci) image(layers ...object) object {
	config := o.blob("application/vnd.oci.image.config.v1+json", jsonOf(o.t, object{"os": "linux", "architecture": goruntime.GOARCH}))
	return o.blob(manifestType, jsonOf(o.t, object{"schemaVersion": 2, "config": config, "layers": layers}))
}

func (o *oci) archive(tops ...object) []byte {
	return tarOf(o.t, append(o.files,
		file{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		file{"index.json", jsonOf(o.t, object{"schemaVersion": 2, "manifests": tops})})...)
}

func ociOf(t testing.TB, layers ...[]byte) []byte {
	o := &oci{t: t}
	var of []object
	for _, l := range layers {
		of = append(of, o.blob(layerType, l))
	}
	return o.archive(o.image(of...))
}

func dockerOf(t testing.TB, layer []byte) []byte {
	return tarOf(t, file{"l/layer.tar", layer}, file{"c.json", []byte(`{"os":"linux"}`)},
		file{"manifest.json", []byte(`[{"Config":"c.json","RepoTags":["a:1"],"Layers":["l/layer.tar"]}]`)})
}

// sparseLayer is a layer of few bytes with a file of so many, all of it a hole.
func sparseLayer(t testing.TB, size int) []byte {
	content := "1\n" + fmt.Sprint(size) + "\n0\n"
	body := make([]byte, 512)
	copy(body, content)
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	records := ""
	for _, kv := range [][2]string{{"GNU.sparse.major", "1"}, {"GNU.sparse.minor", "0"}, {"GNU.sparse.name", "hole"}, {"GNU.sparse.realsize", fmt.Sprint(size)}} {
		line := " " + kv[0] + "=" + kv[1] + "\n"
		n := len(line) + 2
		records += fmt.Sprintf("%d%s", n, line)
	}
	raw := func(name string, kind byte, text []byte) {
		h := make([]byte, 512)
		copy(h, name)
		copy(h[100:], "0000644\x000000000\x000000000\x00")
		copy(h[124:], fmt.Sprintf("%011o\x00%011o\x00        ", len(text), 0))
		h[156] = kind
		copy(h[257:], "ustar\x0000")
		sum := 0
		for _, b := range h {
			sum += int(b)
		}
		copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
		out.Write(h)
		out.Write(text)
		out.Write(make([]byte, (512-len(text)%512)%512))
	}
	raw("pax", 'x', []byte(records))
	raw("hole", '0', body)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

const limit = 1 << 20

func check(text []byte) (passed []byte, err error) {
	var out bytes.Buffer
	err = archive.Check(&out, bytes.NewReader(text), archive.Bounds{Bytes: limit})
	return out.Bytes(), err
}

func TestAGoodArchivePassesUnchanged(t *testing.T) {
	layer := tarOf(t, file{"box", bytes.Repeat([]byte("x"), 5000)})
	for name, text := range map[string][]byte{
		"OCI": ociOf(t, layer), "OCI, gzip": ociOf(t, gzipped(t, layer)), "OCI, zstd": ociOf(t, zstdOf(t, layer)),
		"docker": dockerOf(t, layer), "docker, gzip": dockerOf(t, gzipped(t, layer)),
		"one blob twice": ociOf(t, layer, layer),
	} {
		if passed, err := check(text); err != nil || !bytes.Equal(passed, text) {
			t.Errorf("%s: %d of %d bytes passed, %v", name, len(passed), len(text), err)
		}
	}
}

func TestAnImageOfOtherPlatformsMayBeLeftOutOfAnArchive(t *testing.T) {
	o := &oci{t: t}
	here := o.image(o.blob(layerType, tarOf(t)))
	here["platform"] = object{"os": "linux", "architecture": goruntime.GOARCH}
	away := object{"mediaType": manifestType, "digest": "sha256:" + strings.Repeat("0", 64), "platform": object{"os": "linux", "architecture": "other"}}
	if _, err := check(o.archive(here, away)); err != nil {
		t.Error(err)
	}
}

func TestAHostileArchiveIsRefusedBeforeItsEndIsPassedOn(t *testing.T) {
	zeros := make([]byte, 8*limit)
	layer := tarOf(t, file{"a", nil})
	big := tarOf(t, file{"a", make([]byte, 300<<10)})
	many := func() []byte {
		var files []file
		for i := range 400 {
			files = append(files, file{fmt.Sprint(i), []byte("x")})
		}
		return tarOf(t, files...)
	}()
	with := func(edit func(o *oci) []byte) []byte { return edit(&oci{t: t}) }
	for name, c := range map[string]struct {
		text []byte
		want string
	}{
		"gzip bomb":                     {ociOf(t, gzipped(t, tarOf(t, file{"a", zeros}))), "it unpacks to more"},
		"zstd bomb":                     {ociOf(t, zstdOf(t, tarOf(t, file{"a", zeros}))), "it unpacks to more"},
		"docker bomb":                   {dockerOf(t, gzipped(t, tarOf(t, file{"a", zeros}))), "it unpacks to more"},
		"bomb that is not a tar":        {ociOf(t, gzipped(t, zeros)), "it unpacks to more"},
		"several that are one together": {ociOf(t, gzipped(t, big), gzipped(t, append(big, 0)), gzipped(t, append(big, 0, 0)), gzipped(t, append(big, 0, 0, 0))), "it unpacks to more"},
		"one layer on itself":           {with(func(o *oci) []byte { l := o.blob(layerType, big); return o.archive(o.image(l, l, l, l)) }), "its images unpack to"},
		"bomb that no image names":      {with(func(o *oci) []byte { o.blob(layerType, gzipped(t, zeros)); return o.archive(o.image()) }), "it unpacks to more"},
		"file with the largest hole":    {ociOf(t, sparseLayer(t, math.MaxInt64)), "it unpacks to more"},
		"hole in the archive itself":    {sparseLayer(t, 1<<40), "its files have more"},
		"file with a hole":              {ociOf(t, sparseLayer(t, 1<<40)), "it unpacks to more"},
		"layer that looks like a text":  {ociOf(t, append([]byte("{"), tarOf(t, file{"{", make([]byte, 2*limit)})[1:]...)), "--max-image-bytes"},
		"many small files":              {ociOf(t, gzipped(t, many)), "--max-image-bytes"},
		"too large as it is":            {ociOf(t, zeros), "--max-image-bytes"},
		"wrong digest":                  {with(func(o *oci) []byte { i := o.image(); o.files[0].text = []byte("{}"); return o.archive(i) }), "does not have the digest"},
		"missing layer":                 {with(func(o *oci) []byte { l := o.blob(layerType, layer); o.files = nil; return o.archive(o.image(l)) }), "layer \"sha256:"},
		"missing manifest":              {with(func(o *oci) []byte { i := o.image(); o.files = nil; return o.archive(i) }), "is missing"},
		"no index":                      {tarOf(t, file{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)}), "index.json is missing"},
		"name twice":                    {tarOf(t, file{"index.json", []byte("{}")}, file{"./index.json", []byte("[]")}), "twice"},
		"long name":                     {tarOf(t, file{strings.Repeat("n", 2000), nil}), "longer than"},
		"damaged gzip":                  {ociOf(t, gzipped(t, layer)[:20]), "damaged"},
		"broken off":                    {ociOf(t, layer)[:700], "damaged"},
		"noise":                         {bytes.Repeat([]byte("x"), 4096), "damaged"},
		"empty":                         {nil, "neither an OCI nor a docker archive"},
		"manifest that is not JSON":     {with(func(o *oci) []byte { return o.archive(o.blob(manifestType, []byte("{x"))) }), "is not what it should be"},
		"manifest that is a layer":      {with(func(o *oci) []byte { return o.archive(o.blob(manifestType, layer)) }), "is not JSON"},
		"too many layers": {with(func(o *oci) []byte {
			l := o.blob(layerType, layer)
			layers := make([]object, 600)
			for i := range layers {
				layers[i] = l
			}
			return o.archive(o.image(layers...))
		}), "layers"},
		"index in index in index": {with(func(o *oci) []byte {
			top := o.image()
			for range 8 {
				top = o.blob(indexType, jsonOf(t, object{"manifests": []object{top}}))
			}
			return o.archive(top)
		}), "nested"},
		"indexes that name one many times": {with(func(o *oci) []byte {
			top := o.image()
			for range 3 {
				of := make([]object, 100)
				for i := range of {
					of[i] = top
				}
				top = o.blob(indexType, jsonOf(t, object{"manifests": of}))
			}
			return o.archive(top)
		}), "name more than"},
	} {
		passed, err := check(c.text)
		if !errors.Is(err, runtime.ErrImageRefused) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want it refused with %q", name, err, c.want)
		}
		if len(passed) > limit || len(passed) > 0 && len(passed) >= len(c.text) {
			t.Errorf("%s: %d of %d bytes passed", name, len(passed), len(c.text))
		}
	}
}

func TestAnArchiveForWhichThereIsNoRoomIsRefused(t *testing.T) {
	full := errors.New("full")
	text := ociOf(t, gzipped(t, tarOf(t, file{"a", make([]byte, 100<<10)})))
	for _, free := range []int64{-1, 100 << 10} {
		room := func(bytes int64) error {
			if bytes > free {
				return full
			}
			return nil
		}
		var out bytes.Buffer
		err := archive.Check(&out, bytes.NewReader(text), archive.Bounds{Bytes: limit, Room: room})
		if !errors.Is(err, full) || out.Len() >= len(text) {
			t.Errorf("%d bytes free: %v, %d of %d bytes passed", free, err, out.Len(), len(text))
		}
	}
}

func TestAnErrorOfTheStreamIsNotTheArchives(t *testing.T) {
	broke := errors.New("the upload broke off")
	text := ociOf(t, gzipped(t, tarOf(t, file{"a", []byte("x")})))
	for n := range len(text) - 1024 {
		if n%97 != 0 {
			continue
		}
		err := archive.Check(io.Discard, io.MultiReader(bytes.NewReader(text[:n]), failing{broke}), archive.Bounds{Bytes: limit})
		if !errors.Is(err, broke) || errors.Is(err, runtime.ErrImageRefused) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// FuzzArchive: whatever comes, nothing panics, no more is passed on than may be, an archive that
// is refused is not passed on whole, and memory is bounded.
func FuzzArchive(f *testing.F) {
	layer := tarOf(f, file{"box", []byte("x")})
	bomb := gzipped(f, tarOf(f, file{"a", make([]byte, 2*limit)}))
	for _, text := range [][]byte{
		dockerOf(f, layer), ociOf(f, layer), ociOf(f, gzipped(f, layer)), ociOf(f, zstdOf(f, layer)),
		ociOf(f, bomb), dockerOf(f, bomb), ociOf(f, sparseLayer(f, 1<<40)),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		var out counter
		err := archive.Check(&out, bytes.NewReader(text), archive.Bounds{Bytes: limit})
		goruntime.ReadMemStats(&after)
		if int(out) > min(limit, len(text)) {
			t.Errorf("%d of %d bytes passed", out, len(text))
		}
		if err != nil && len(text) >= 1024 && int(out) > len(text)-1024 {
			t.Errorf("refused, and passed whole: %v", err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 512<<20 {
			t.Errorf("%d bytes of memory for %d", used, len(text))
		}
	})
}

type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
