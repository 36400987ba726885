// Package lines reads lines of text that nobody vouches for: of any length, in any bytes, cut off
// anywhere.
package lines

import (
	"bufio"
	"io"
	"strings"
)

// maxLine is how much of a line is kept; dumps and kernel logs have no longer ones.
const maxLine = 64 << 10

// A Reader reads lines one by one.
type Reader struct {
	br    *bufio.Reader
	Bytes int64 // read so far
}

// NewReader returns a Reader of r.
func NewReader(r io.Reader) *Reader { return &Reader{br: bufio.NewReaderSize(r, 256<<10)} }

// Peek returns the next n bytes, fewer at the end, without moving on. n is at most 256 KiB.
func (r *Reader) Peek(n int) ([]byte, error) {
	b, err := r.br.Peek(n)
	if err == io.EOF {
		err = nil
	}
	return b, err
}

// Read implements io.Reader: the bytes that Next has not returned yet.
func (r *Reader) Read(p []byte) (int, error) {
	n, err := r.br.Read(p)
	r.Bytes += int64(n)
	return n, err
}

// Next returns the next line without its end, as valid UTF-8, cut to 64 KiB, and whether it was ended by
// \n, as the last line of a file that is still written is not. After the last line it returns io.EOF.
func (r *Reader) Next() (line string, ended bool, err error) {
	var b strings.Builder
	for {
		chunk, err := r.br.ReadSlice('\n')
		r.Bytes += int64(len(chunk))
		b.Write(chunk[:min(maxLine-b.Len(), len(chunk))])
		if err == bufio.ErrBufferFull {
			continue
		}
		ended := strings.HasSuffix(string(chunk), "\n")
		if len(chunk) == 0 && b.Len() == 0 && err != nil {
			return "", false, err
		}
		if err == io.EOF {
			err = nil // the next call says so
		}
		return strings.ToValidUTF8(strings.TrimRight(b.String(), "\r\n"), "\uFFFD"), ended, err
	}
}

// Cut cuts a text to n bytes and keeps it valid UTF-8.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}
