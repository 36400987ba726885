package failure

import (
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"
)

//go:embed catalogue.toml
var catalogueTOML []byte

// Default returns the embedded catalogue. It panics if the embedded file is bad, which a test rules out.
var Default = sync.OnceValue(func() *Catalogue {
	c, err := Load("catalogue.toml", catalogueTOML)
	if err != nil {
		panic(err)
	}
	return c
})

// Load reads a catalogue that stands alone. Errors name file and line.
func Load(name string, data []byte) (*Catalogue, error) {
	classes, err := parse(name, data)
	if err != nil {
		return nil, err
	}
	return build(name, data, classes, nil)
}

// With returns the catalogue with the classes of a user's file: one whose id is known replaces the
// entry, any other is asked before all others. Errors name file and line.
func (c *Catalogue) With(name string, data []byte) (*Catalogue, error) {
	classes, err := parse(name, data)
	if err != nil {
		return nil, err
	}
	return build(name, data, classes, c.Classes)
}

func parse(name string, data []byte) ([]Class, error) {
	var file struct {
		Class []Class `toml:"class"`
	}
	meta, err := toml.Decode(string(data), &file)
	var pe toml.ParseError
	switch {
	case errors.As(err, &pe):
		return nil, fmt.Errorf("%s:%d: %s", name, pe.Position.Line, pe.Message)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if un := meta.Undecoded(); len(un) > 0 {
		key := un[0][len(un[0])-1]
		return nil, fmt.Errorf("%s:%d: unknown key %q", name, lineOfKey(data, key), un[0].String())
	}
	if len(file.Class) == 0 {
		return nil, fmt.Errorf("%s:1: no [[class]] in it", name)
	}
	return file.Class, nil
}

// build compiles classes, own before base.
func build(name string, data []byte, own, base []Class) (*Catalogue, error) {
	for i := range own {
		if err := own[i].compile(); err != nil {
			return nil, fmt.Errorf("%s:%d: class %q: %w", name, lineOfClass(data, i), own[i].ID, err)
		}
		if slices.ContainsFunc(own[:i], func(cl Class) bool { return cl.ID == own[i].ID }) {
			return nil, fmt.Errorf("%s:%d: class %q stands twice", name, lineOfClass(data, i), own[i].ID)
		}
	}
	classes := slices.Clone(own)
	for _, cl := range base {
		i := slices.IndexFunc(classes, func(o Class) bool { return o.ID == cl.ID })
		if i < 0 {
			classes = append(classes, cl)
			continue
		}
		replaced := classes[i] // keeps the place of the entry that it replaces
		classes = append(slices.Delete(classes, i, i+1), replaced)
	}
	c := &Catalogue{Classes: classes, byID: map[string]*Class{}, byExc: map[string]*Class{}, text: newFinder(), native: newFinder()}
	for i := range c.Classes {
		c.index(i)
	}
	for _, id := range []string{Unknown, "code/exception"} {
		if c.byID[id] == nil {
			return nil, fmt.Errorf("%s: class %q is missing", name, id)
		}
	}
	for i := range own {
		if id := c.dangling(&own[i]); id != "" {
			return nil, fmt.Errorf("%s:%d: class %q refers to %q, which is no class", name, lineOfClass(data, i), own[i].ID, id)
		}
		for _, sample := range own[i].Yes {
			if base != nil && c.name(sample).ID != own[i].ID {
				return nil, fmt.Errorf("%s:%d: class %q: its sample %q is named %s", name, lineOfClass(data, i), own[i].ID, sample, c.name(sample).ID)
			}
		}
	}
	return c, nil
}

// name says what a line of a sample is named when it is taken for error text.
func (c *Catalogue) name(line string) *Class {
	if cl := c.MatchNative(line); cl != nil {
		return cl
	}
	typ, msg, _ := strings.Cut(line, ": ")
	return c.MatchException(typ, msg, line)
}

// index enters a class into the tables. Of two that list the same exception the earlier one has it.
func (c *Catalogue) index(i int) {
	cl := &c.Classes[i]
	c.byID[cl.ID] = cl
	for _, e := range cl.Exceptions {
		if c.byExc[e] == nil {
			c.byExc[e] = cl
		}
	}
	for _, t := range cl.Text {
		c.text.add(t, hit{class: i, pattern: -1})
	}
	for _, t := range cl.Native {
		c.text.add(t, hit{class: i, pattern: -1})
		c.native.add(t, hit{class: i, pattern: -1})
	}
	for _, t := range cl.Line {
		c.text.add(t, hit{class: i, pattern: -1, whole: true})
		c.native.add(t, hit{class: i, pattern: -1, whole: true})
	}
	for j, p := range cl.Patterns {
		c.text.add(p.Has, hit{class: i, pattern: j})
		if p.Native {
			c.native.add(p.Has, hit{class: i, pattern: j})
		}
	}
}

// dangling returns an id that the class refers to and that is none.
func (c *Catalogue) dangling(cl *Class) string {
	for _, id := range append(slices.Clone(cl.Hides), cl.YieldsTo...) {
		if c.byID[id] == nil {
			return id
		}
	}
	return ""
}

var classID = regexp.MustCompile(`^[a-z0-9-]+(/[a-z0-9-]+)?$`)

// compile checks a class and compiles its patterns.
func (cl *Class) compile() error {
	if !classID.MatchString(cl.ID) {
		return errors.New("id must be family/name in small letters, digits and dashes")
	}
	if cl.Title == "" || cl.Meaning == "" {
		return errors.New("title and meaning must be given")
	}
	if cl.Role == "" {
		cl.Role = Root
	}
	if cl.Domain == "" {
		cl.Domain = NobodyKnows
	}
	if cl.Retry == "" {
		cl.Retry = RetryUnknown
	}
	if !slices.Contains([]Role{Root, Stop, Cascade, Wrapper, Teardown, Note}, cl.Role) {
		return fmt.Errorf("role %q is none of root, stop, cascade, wrapper, teardown, note", cl.Role)
	}
	if !slices.Contains([]Domain{Workload, Environment, Infrastructure, Scheduler, Human, Data, Search, NobodyKnows}, cl.Domain) {
		return fmt.Errorf("domain %q is none of workload, environment, infrastructure, scheduler, human, data, study, unknown", cl.Domain)
	}
	if !slices.Contains([]Retry{RetryYes, RetryNo, RetryElsewhere, RetryUnknown}, cl.Retry) {
		return fmt.Errorf("retry %q is none of yes, no, elsewhere, unknown", cl.Retry)
	}
	for _, t := range slices.Concat(cl.Text, cl.Native, cl.Line) {
		if len(compact(t)) < minLiteral || compact(t) != t && strings.TrimSpace(t) != compact(t) {
			return fmt.Errorf("literal %q: at least %d bytes, and single spaces only, are needed", t, minLiteral)
		}
	}
	for i := range cl.Patterns {
		p := &cl.Patterns[i]
		if len(p.Has) < minLiteral {
			return fmt.Errorf("pattern %q: has must be a literal of at least %d bytes", p.RE, minLiteral)
		}
		var err error
		if p.re, err = regexp.Compile(p.RE); err != nil {
			return err
		}
	}
	for i := range cl.Advice {
		if a := &cl.Advice[i]; a.Text == "" || a.Source == "" {
			return errors.New("advice needs text and source")
		}
	}
	return cl.compileFacts()
}

// lineOfClass is the line on which the i-th [[class]] stands.
func lineOfClass(data []byte, i int) int {
	n := 0
	for l, line := range strings.Split(string(data), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "[[class]]") {
			if n == i {
				return l + 1
			}
			n++
		}
	}
	return 1
}

// lineOfKey is the first line that sets a key.
func lineOfKey(data []byte, key string) int {
	for l, line := range strings.Split(string(data), "\n") {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), key)
		if ok && (strings.HasPrefix(strings.TrimSpace(rest), "=") || strings.HasPrefix(rest, "]")) ||
			strings.HasPrefix(strings.TrimSpace(line), "["+key) || strings.HasPrefix(strings.TrimSpace(line), "[["+key) || strings.Contains(line, "."+key+"]") {
			return l + 1
		}
	}
	return 1
}
