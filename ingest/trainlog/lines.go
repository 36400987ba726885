package trainlog

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
)

// maxLine is where a line is cut. What is cut off is skipped, and the cut is counted.
const maxLine = 1 << 20

// A segment is a piece of a line that ends in \n, \r\n or \r. A progress bar writes many segments,
// each over the last, on what an editor shows as one line; they share its number.
type segment struct {
	line int // 1-based, by \n
	text string
	cut  bool
	last bool // the last segment of its line
}

// eachSegment reads r to its end and hands over every segment, cleaned of escape codes and made
// valid UTF-8. It returns the number of bytes read.
func eachSegment(r io.Reader, f func(segment)) (int64, error) {
	br := bufio.NewReaderSize(r, 256<<10)
	var (
		total int64
		line  = 1
		buf   []byte
		cut   bool
		begun bool // a segment of the current line was handed over
	)
	emit := func(last bool) {
		f(segment{line: line, text: clean(buf), cut: cut, last: last})
		buf, cut, begun = buf[:0], false, !last
	}
	keep := func(b []byte) {
		if room := maxLine - len(buf); len(b) > room {
			b, cut = b[:room], true
		}
		buf = append(buf, b...)
	}
	for {
		chunk, err := br.ReadSlice('\n')
		total += int64(len(chunk))
		body, ended := bytes.CutSuffix(chunk, []byte("\n"))
		body = bytes.TrimSuffix(body, []byte("\r"))
		for {
			i := bytes.IndexByte(body, '\r')
			if i < 0 {
				break
			}
			keep(body[:i])
			emit(false)
			body = body[i+1:]
		}
		keep(body)
		if ended || err != nil && !errors.Is(err, bufio.ErrBufferFull) && (len(buf) > 0 || begun) {
			emit(true)
			line++
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			if err == io.EOF {
				err = nil
			}
			return total, err
		}
	}
}

// escapes are ECMA-48 control sequences and operating system commands (window titles, links).
var escapes = regexp.MustCompile(`\x1b(?:\[[0-9;:?<=>]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])`)

// clean makes a segment printable text: no escape codes, no control characters, valid UTF-8.
func clean(b []byte) string {
	s := string(b)
	if strings.IndexByte(s, 0x1b) >= 0 {
		s = escapes.ReplaceAllString(s, "")
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.IndexFunc(s, isControl) >= 0 {
		s = strings.Map(func(r rune) rune {
			if isControl(r) {
				return -1
			}
			return r
		}, s)
	}
	return strings.TrimRight(s, " \t")
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 }
