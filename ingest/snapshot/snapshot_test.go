package snapshot

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
)

func sample(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("../../testdata/gallery/oom_snapshot.pickle")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestSample holds what is known of the recorded snapshot.
func TestSample(t *testing.T) {
	b := sample(t)
	if !Sniff(b) {
		t.Error("not told")
	}
	tl, err := Read(bytes.NewReader(b), 0)
	if err != nil {
		t.Fatal(err)
	}
	s := tl.Snapshots[0]
	var total, allocated, requested int64
	pools := map[string]int{}
	for _, seg := range s.Segments {
		total, allocated, requested = total+seg.TotalBytes, allocated+seg.AllocatedBytes, requested+seg.RequestedBytes
		pools[seg.Pool]++
		sum := int64(0)
		for _, b := range seg.Blocks {
			sum += b.SizeBytes
		}
		if sum != seg.TotalBytes {
			t.Errorf("the blocks of a segment have %d of %d bytes", sum, seg.TotalBytes)
		}
	}
	if len(s.Segments) != 252 || total != 4288675840 || allocated != 4205838336 || requested != 4086300672 || pools["large"] != 251 || pools["small"] != 1 {
		t.Errorf("%d segments %v, %d total, %d allocated, %d requested", len(s.Segments), pools, total, allocated, requested)
	}
	if len(s.Refused) != 1 || s.Refused[0].SizeBytes != 15728640 || s.Refused[0].Time.Format(time.RFC3339Nano) != "2026-11-20T19:40:00.059365Z" {
		t.Errorf("%+v", s.Refused)
	}
	if tl.Sources[0].Bytes != 401784 {
		t.Errorf("read %d bytes", tl.Sources[0].Bytes)
	}
}

// TestRefused holds that nothing is ever called or imported.
func TestRefused(t *testing.T) {
	for name, doc := range map[string]string{
		"os.system":       "\x80\x04cos\nsystem\n(S'true'\ntR.",
		"stack global":    "\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R.",
		"reduce":          "\x80\x04)R.",
		"no end":          "\x80\x04}",
		"nothing":         "",
		"no snapshot":     "\x80\x04}.",
		"a number":        "\x80\x04K\x01.",
		"underflow":       "\x80\x04s.",
		"a long text":     "\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f",
		"memo of none":    "\x80\x04h\x05.",
		"wrong container": "\x80\x04K\x01K\x02a.",
	} {
		if _, err := Read(strings.NewReader(doc), 0); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestNumbers(t *testing.T) {
	for doc, want := range map[string]value{"K\xff": int64(255), "M\x00\x01": int64(256), "J\xff\xff\xff\xff": int64(-1), "\x8a\x00": int64(0), "\x8a\x01\xff": int64(-1),
		"\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01": float64(1 << 32 * (1 << 32)), "G\x3f\xf8\x00\x00\x00\x00\x00\x00": 1.5, "N": nil, "\x88": true, "\x89": false} {
		got, _, err := decode(strings.NewReader("\x80\x04" + doc + "."))
		if err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", doc, got, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	b := sample(f)
	f.Add(b[:4096])
	f.Add([]byte("\x80\x04}\x8c\x08segments](}\x8c\x0atotal_sizeK\x05sa" + "s."))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := Read(bytes.NewReader(b), 0); err == nil && len(b) == 0 {
			t.Error("nothing was read as a snapshot")
		}
	})
}
