package report

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"postmortem/analyze"
	"postmortem/ingest"
	"postmortem/ingest/failure"
	"postmortem/ingest/timeline"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

func nightly(t testing.TB) Document {
	t.Helper()
	tl, err := ingest.Read(context.Background(), ingest.Request{Paths: []string{"../testdata/nightly"}, Catalogue: failure.Default()})
	if err != nil {
		t.Fatal(err)
	}
	return Document{Findings: analyze.Run(tl, failure.Default()), Catalogue: failure.Default(), Version: "test"}
}

func render(t testing.TB, name string, d Document, files FileWriter) string {
	t.Helper()
	for _, r := range Renderers {
		if r.Name == name {
			var b bytes.Buffer
			if err := r.Render(&b, d, files); err != nil {
				t.Fatal(err)
			}
			return b.String()
		}
	}
	t.Fatalf("no renderer %q", name)
	return ""
}

func TestGolden(t *testing.T) {
	d := nightly(t)
	for _, name := range []string{"markdown", "text"} {
		t.Run(name, func(t *testing.T) {
			got := render(t, name, d, nil)
			path := filepath.Join("testdata", "nightly."+name+".golden")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got; go test ./report -update writes it anew):\n%s", diff)
			}
		})
	}
}

// TestHTMLStandsAlone: one file, no script, nothing from outside, well formed, with titles to hover.
func TestHTMLStandsAlone(t *testing.T) {
	html := render(t, "html", nightly(t), nil)
	for _, bad := range []string{"<script", "javascript:", " onload", "<link", "<img", "@import", "url(", "src=", ` style="`} {
		if strings.Contains(html, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for _, want := range []string{"default-src 'none'", "prefers-color-scheme:dark", "@media print", "<h1>82 of 179 trials were lost", "<svg ", "<title>trial 7: lost", `href="#i`, "worker0.log:258"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for rest := html; ; {
		i := strings.Index(rest, "<svg ")
		if i < 0 {
			break
		}
		j := strings.Index(rest[i:], "</svg>") + len("</svg>")
		dec := xml.NewDecoder(strings.NewReader(rest[i : i+j]))
		for {
			if _, err := dec.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("an SVG is not well formed: %v", err)
			}
		}
		rest = rest[i+j:]
	}
	if len(html) > 1<<20 {
		t.Errorf("the page has %d bytes", len(html))
	}
}

func TestMarkdownPlots(t *testing.T) {
	files := map[string]int{}
	md := render(t, "markdown", nightly(t), func(name string, data []byte) error {
		if !bytes.HasPrefix(data, []byte("\x89PNG")) {
			t.Errorf("%s is no PNG", name)
		}
		files[name] = len(data)
		return nil
	})
	for _, name := range []string{"plots/timeline.png", "plots/rates-1.png", "plots/rates-2.png"} {
		if files[name] == 0 || !strings.Contains(md, "]("+name+")") {
			t.Errorf("%s is missing", name)
		}
	}
}

// TestContract: every list of the contract is there and none is null.
func TestContract(t *testing.T) {
	for name, d := range map[string]Document{"nightly": nightly(t), "nothing": {Findings: analyze.Run(&timeline.Timeline{}, failure.Default()), Catalogue: failure.Default()}} {
		var m map[string]json.RawMessage
		if err := json.Unmarshal([]byte(render(t, "json", d, nil)), &m); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"inputs", "studies", "incidents", "failures", "culprits", "context", "settings", "checks", "advice", "gates"} {
			if !bytes.HasPrefix(m[key], []byte("[")) {
				t.Errorf("%s: %s is %.20s", name, key, m[key])
			}
		}
		if string(m["schema_version"]) != "1" || bytes.Contains(m["memory"], []byte("null")) {
			t.Errorf("%s: schema_version %s, memory %s", name, m["schema_version"], m["memory"])
		}
	}
}

// hostile is text that no report may let through as markup or control.
var hostile = []string{
	"<script>alert(1)</script>", "</title><script>x</script>", `"><img src=x onerror=alert(1)>`, "javascript:alert(1)", "</details>", "<!-- x",
	"| a | b |", "`code` ``x``", "[link](http://evil.example)", "![i](http://evil.example/x.png)", "# head", "**bold**", "@someone", "#12", "&lt;b&gt;",
	"\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\u202eevil", "a\nb\r\nc", "{{.Version}}", "\x00", "\xff\xfe", "]]>", "$(id)", "::error::x", "```\n# x",
}

// hostileDocument plants a text in every string that comes from inputs.
func hostileDocument(s string) Document {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	dist := &timeline.Distribution{Kind: timeline.Categorical, Choices: []timeline.Choice{{Type: timeline.ChoiceString, Text: s}, {Type: timeline.ChoiceString, Text: "x"}}}
	trials := []timeline.Trial{
		{Number: 0, State: timeline.Fail, Start: at, End: at.Add(time.Minute), Worker: s, Params: []timeline.Param{{Name: s, Dist: dist}}, Stream: 0, Process: 0, Link: timeline.Stated},
		{Number: 1, State: timeline.State(s), Start: at, End: at.Add(time.Minute), Worker: s, Stream: -1, Process: -1},
	}
	size := &timeline.Distribution{Kind: timeline.Int, High: 9, Step: 1}
	for i := range 120 { // those with s and a size die
		from := at.Add(time.Duration(i) * time.Minute)
		x := timeline.Trial{Number: 2 + i, State: timeline.Complete, Values: []float64{1}, Start: from, End: from.Add(time.Minute), Stream: -1, Process: -1,
			Params:    []timeline.Param{{Name: s, Dist: dist, Internal: float64(i % 2)}, {Name: s + " size", Dist: size, Internal: float64(i / 2 % 10)}},
			UserAttrs: []timeline.Attr{{Key: s, JSON: strconv.Itoa(i % 3)}}}
		if i%2 == 0 && i/2%10 >= 4 {
			x.State = timeline.Fail
			x.UserAttrs = append(x.UserAttrs, timeline.Attr{Key: "error_msg", JSON: `"CUDA out of memory"`})
		}
		trials = append(trials, x)
	}
	tl := &timeline.Timeline{
		Sources:   []timeline.Source{{Name: s, Kind: timeline.Kind(s), Notes: []string{s}, Lines: 3}},
		Studies:   []timeline.Study{{Name: s, Trials: trials, Directions: []timeline.Direction{timeline.Direction(s)}}},
		Streams:   []timeline.Stream{{Name: s, Study: s}},
		Processes: []timeline.Process{{PID: 5, Start: at, End: at.Add(time.Minute)}},
		Events: []timeline.Event{
			{Kind: timeline.Failure, Class: "code/" + s, Text: s, Time: at, Quality: timeline.TimeStated, Study: s, Trial: 0, Pos: timeline.Pos{Line: 1, Row: s}, Facts: []timeline.Fact{{Name: s, Value: 1}}},
			{Kind: timeline.Setting, Key: s, Value: s, Trial: timeline.NoTrial},
		},
		GPUs:      []timeline.GPU{{Name: s, UUID: s, Time: []time.Time{at}, UsedBytes: []int64{1 << 30}, FreeBytes: []int64{-1}, Util: []float64{-1}, TotalBytes: 2 << 30}},
		Tenants:   []timeline.Tenant{{Name: s, UUID: s, PID: 5, Time: []time.Time{at}, UsedBytes: []int64{1}}},
		Snapshots: []timeline.Snapshot{{Segments: []timeline.Segment{{TotalBytes: 9, Pool: s, Blocks: []timeline.Block{{SizeBytes: 9, Live: true, Frame: s}}}}}},
		Problems:  []timeline.Problem{{Msg: s, Text: s, Count: 1}},
		Skipped:   []timeline.Skipped{{Name: s, Why: timeline.SkipReason(s)}},
		Clocks:    []timeline.Clock{{Of: "logs", Zone: s, How: timeline.ZoneGiven}},
	}
	return Document{Findings: analyze.Run(tl, failure.Default()), Catalogue: failure.Default(), Version: "test"}
}

func TestHostileText(t *testing.T) {
	for _, s := range hostile {
		t.Run(fmt.Sprintf("%q", s), func(t *testing.T) { checkHostile(t, s) })
	}
}

// checkHostile compares a report with the text against one with a harmless text: the structure of both
// must be the same.
func checkHostile(t *testing.T, s string) {
	d := hostileDocument(s)
	html := render(t, "html", d, nil)
	tags := func(doc string) map[string]int {
		m := map[string]int{}
		for _, tag := range []string{"<script", "<img", "<title", "</details>", "<!--", "<b>", "<td", "<a ", "<text"} {
			m[tag] = strings.Count(doc, tag)
		}
		return m
	}
	plain := hostileDocument("harmless")
	if strings.TrimSpace(plainText(s)) != "" {
		if diff := cmp.Diff(tags(render(t, "html", plain, nil)), tags(html)); diff != "" {
			t.Errorf("HTML changed its structure:\n%s", diff)
		}
	}
	md := render(t, "markdown", d, nil)
	if n := strings.Count(md, "known to die here"); n != 1 {
		t.Errorf("%d cuts written as code, want 1", n)
	}
	for _, line := range strings.Split(stripBlocks(md), "\n") {
		bare := escaped.ReplaceAllString(stripCode(line), "")
		for _, bad := range []string{"<script", "<img", "](http", "@someone", "**bold**", "<!--"} {
			if strings.Contains(bare, bad) {
				t.Errorf("Markdown lets %q through: %s", bad, line)
			}
		}
	}
	if got, want := strings.Count(md, "</details>"), strings.Count(render(t, "markdown", plain, nil), "</details>"); s != "</details>" && got != want {
		t.Errorf("Markdown has %d </details>, want %d", got, want)
	}
	text := render(t, "text", d, nil)
	for name, doc := range map[string]string{"text": text, "markdown": md, "html": html} {
		if strings.ContainsAny(doc, "\x1b\x07\x00\u202e\r") {
			t.Errorf("%s has a control character", name)
		}
	}
	if !json.Valid([]byte(render(t, "json", d, nil))) {
		t.Error("the JSON is not valid")
	}
}

// stripBlocks takes the fenced blocks of code out of Markdown.
func stripBlocks(md string) string {
	var out []string
	fence := ""
	for _, line := range strings.Split(md, "\n") {
		ticks := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		switch {
		case fence == "" && len(ticks) >= 3:
			fence = ticks
		case fence != "" && line == fence:
			fence = ""
		case fence == "":
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// escaped is what Markdown takes literally.
var escaped = regexp.MustCompile(`\\[[:punct:]]`)

// stripCode takes the code spans out of a line of Markdown.
func stripCode(line string) string {
	var out strings.Builder
	for {
		i := strings.IndexByte(line, '`')
		if i < 0 || i > 0 && line[i-1] == '\\' {
			if i < 0 {
				out.WriteString(line)
				return out.String()
			}
			out.WriteString(line[:i+1])
			line = line[i+1:]
			continue
		}
		n := len(line[i:]) - len(strings.TrimLeft(line[i:], "`"))
		out.WriteString(line[:i])
		rest := line[i+n:]
		j := strings.Index(rest, line[i:i+n])
		if j < 0 {
			return out.String()
		}
		line = rest[j+n:]
	}
}

func FuzzHostileText(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := markdown(s); strings.ContainsAny(got, "\n\r\x1b") {
			t.Errorf("markdown(%q) = %q", s, got)
		}
		span := codeSpan(s)
		if strings.ContainsAny(span, "\n\r\x1b") || stripCode(span) != "" {
			t.Errorf("codeSpan(%q) = %q", s, span)
		}
	})
}

func TestWords(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{percent(0.458), "46 %"}, {percent(0.0056), "0.56 %"}, {percent(0), "0 %"}, {percent(0.995), "99.5 %"}, {percent(1), "100 %"},
		{duration(237.7), "3 min 58 s"}, {duration(2.2), "2.2 s"}, {duration(59.6), "60 s"}, {duration(3600), "1 h"}, {duration(26000), "7 h 13 min"}, {duration(200000), "2 d 7 h"},
		{size(92 << 20), "92 MiB"}, {size(143771 << 20), "140.4 GiB"}, {size(12), "12 bytes"},
		{where("w.log", 3, ""), "w.log:3"}, {where("o.db", 0, "trials/8"), "o.db:trials/8"},
		{offset(0), "UTC"}, {offset(5.5 * 3600), "UTC+05:30"}, {offset(-3600), "UTC−01:00"},
		{numbers([]int{1, 2, 3}, 2), "1, 2 … (1 more)"}, {lower("GPU out of memory"), "GPU out of memory"}, {lower("Gradient x"), "gradient x"},
		{codeSpan("a`b"), "``a`b``"}, {codeSpan("|"), "`\\|`"}, {codeSpan(" "), ""},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func BenchmarkHTML(b *testing.B) {
	d := nightly(b)
	for b.Loop() {
		render(b, "html", d, nil)
	}
}

func TestValues(t *testing.T) {
	for _, tt := range []struct {
		v        any
		want, py string
	}{
		{int64(64), "64", "64"}, {0.003044339221717791, "0.003044", "0.003044339221717791"}, {33792.0, "33792", "33792"}, {1234.56, "1234.6", "1234.56"}, {1e12, "1e+12", "1e+12"},
		{"bert", "bert", `"bert"`}, {"a\"b\n`é", "a\"b\n`é", `"a\"b\n` + "`" + `\u00e9"`}, {true, "True", "True"}, {nil, "None", "None"}, {[]any{"a", int64(1)}, "", `["a", 1]`},
	} {
		if tt.want != "" {
			if got := value(tt.v); got != tt.want {
				t.Errorf("value(%v) = %q, want %q", tt.v, got, tt.want)
			}
		}
		if got := python(tt.v); got != tt.py {
			t.Errorf("python(%v) = %s, want %s", tt.v, got, tt.py)
		}
	}
	if got := values([]any{"a", "b", int64(3)}); got != "a, b or 3" {
		t.Errorf("values: %q", got)
	}
	for p, want := range map[float64]string{0.2: "20 %", 0.0042: "0.42 %", 3.2e-20: "3e-20", 1e-300: "below 1e-300"} {
		if got := chance(p); got != want {
			t.Errorf("chance(%v) = %q, want %q", p, got, want)
		}
	}
}
