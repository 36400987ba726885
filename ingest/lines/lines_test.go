package lines

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestNext(t *testing.T) {
	text := "a\r\n\n\xffb\n" + strings.Repeat("x", maxLine+300<<10) + "\nlast"
	for name, r := range map[string]io.Reader{"whole": strings.NewReader(text), "byte by byte": iotest.OneByteReader(strings.NewReader(text))} {
		t.Run(name, func(t *testing.T) {
			lr := NewReader(r)
			var got []string
			for {
				line, ended, err := lr.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if len(line) > 10 {
					line = fmt.Sprint(len(line))
				}
				got = append(got, fmt.Sprint(line, " ", ended))
			}
			if d := cmp.Diff([]string{"a true", " true", "\uFFFDb true", "65536 true", "last false"}, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if lr.Bytes != int64(len(text)) {
				t.Errorf("%d bytes, want %d", lr.Bytes, len(text))
			}
		})
	}
}

func TestReadError(t *testing.T) {
	lr := NewReader(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(io.ErrUnexpectedEOF)))
	for _, want := range []error{nil, io.ErrUnexpectedEOF} {
		if _, _, err := lr.Next(); err != want {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}

func TestCut(t *testing.T) {
	if got := Cut("aé", 2); got != "a" {
		t.Errorf("got %q", got)
	}
}
