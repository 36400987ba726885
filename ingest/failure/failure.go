// Package failure is the catalogue of failure classes and the matcher from error text to class.
//
// The catalogue is data (catalogue.toml, embedded). Whether a line counts as error text at all is
// for the reader of that format to decide; this package only names what it is given.
package failure

import (
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"
)

//go:embed catalogue.toml
var catalogueTOML []byte

// Unknown is the class of an error that nobody recognises. It is always in a catalogue.
const Unknown = "unknown"

// A Class is one entry of the catalogue.
type Class struct {
	ID      string `toml:"id"`      // family/name; never changes its meaning
	Title   string `toml:"title"`   // a few words for tables
	Meaning string `toml:"meaning"` // one sentence
	// Poisons says that the CUDA context is dead afterwards: later errors that a dead context
	// raises (see Context) in the same process are echoes of this one.
	Poisons bool `toml:"poisons"`
	// Context says that a dead CUDA context raises this class whatever was really asked of it.
	Context bool `toml:"context"`
	// Wrapper says that the class only wraps another one and is never a root beside it.
	Wrapper bool `toml:"wrapper"`

	Text       []string  `toml:"text"`       // literals, any of which names the class
	Pattern    []string  `toml:"pattern"`    // RE2 patterns, tried after all literals of the class
	Exceptions []string  `toml:"exceptions"` // Python exception types (last part of the name) that name the class when no text does
	Native     []string  `toml:"native"`     // literals of lines that count without a Python exception
	Facts      []Reading `toml:"fact"`

	patterns []*regexp.Regexp
}

// A Reading tells how to take one number out of a class's message.
type Reading struct {
	Name    string `toml:"name"`    // with its unit, e.g. requested_bytes
	Pattern string `toml:"pattern"` // group 1 is the number, group 2, if any, its unit
	re      *regexp.Regexp
}

// A Catalogue is an ordered list of classes; earlier entries win.
type Catalogue struct {
	Classes []Class
	byID    map[string]*Class
	byExc   map[string]*Class
}

// Default returns the embedded catalogue. It panics if the embedded file is bad, which a test rules out.
var Default = sync.OnceValue(func() *Catalogue {
	c, err := Load("catalogue.toml", catalogueTOML)
	if err != nil {
		panic(err)
	}
	return c
})

// Load reads a catalogue. Errors name file and line.
func Load(name string, data []byte) (*Catalogue, error) {
	var file struct {
		Class []Class `toml:"class"`
	}
	meta, err := toml.Decode(string(data), &file)
	if err != nil {
		var pe toml.ParseError
		if errors.As(err, &pe) {
			return nil, fmt.Errorf("%s:%d: %s", name, pe.Position.Line, pe.Message)
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if un := meta.Undecoded(); len(un) > 0 {
		return nil, fmt.Errorf("%s: unknown key %q", name, un[0].String())
	}
	c := &Catalogue{Classes: file.Class, byID: map[string]*Class{}, byExc: map[string]*Class{}}
	for i := range c.Classes {
		if err := c.add(&c.Classes[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if c.byID[Unknown] == nil {
		return nil, fmt.Errorf("%s: class %q is missing", name, Unknown)
	}
	return c, nil
}

func (c *Catalogue) add(cl *Class) error {
	if cl.ID == "" || cl.Title == "" || cl.Meaning == "" {
		return fmt.Errorf("class %q: id, title and meaning must be given", cl.ID)
	}
	if c.byID[cl.ID] != nil {
		return fmt.Errorf("class %q stands twice", cl.ID)
	}
	c.byID[cl.ID] = cl
	for _, e := range cl.Exceptions {
		if c.byExc[e] != nil {
			return fmt.Errorf("class %q: exception %s already names %s", cl.ID, e, c.byExc[e].ID)
		}
		c.byExc[e] = cl
	}
	for _, p := range cl.Pattern {
		re, err := regexp.Compile(p)
		if err != nil {
			return fmt.Errorf("class %q: %w", cl.ID, err)
		}
		cl.patterns = append(cl.patterns, re)
	}
	for i := range cl.Facts {
		re, err := regexp.Compile(cl.Facts[i].Pattern)
		if err != nil {
			return fmt.Errorf("class %q, fact %q: %w", cl.ID, cl.Facts[i].Name, err)
		}
		if re.NumSubexp() < 1 {
			return fmt.Errorf("class %q, fact %q: pattern has no group", cl.ID, cl.Facts[i].Name)
		}
		cl.Facts[i].re = re
	}
	return nil
}

// Class returns the class of that id, or the class Unknown.
func (c *Catalogue) Class(id string) *Class {
	if cl := c.byID[id]; cl != nil {
		return cl
	}
	return c.byID[Unknown]
}

// Match names error text that is known to be error text, such as an exception's message. It returns
// nil when no class's own words are in it.
func (c *Catalogue) Match(text string) *Class {
	text = compact(text)
	for i := range c.Classes {
		cl := &c.Classes[i]
		for _, t := range cl.Text {
			if strings.Contains(text, t) {
				return cl
			}
		}
		for _, t := range cl.Native {
			if strings.Contains(text, t) {
				return cl
			}
		}
		for _, re := range cl.patterns {
			if re.MatchString(text) {
				return cl
			}
		}
	}
	return nil
}

// MatchNative names a log line that is not part of a Python exception, or returns nil. Only the
// lines that a class lists as native count: words such as "NaN" or "assert" in a healthy log do not.
func (c *Catalogue) MatchNative(line string) *Class {
	for i := range c.Classes {
		for _, t := range c.Classes[i].Native {
			if strings.Contains(line, t) {
				return &c.Classes[i]
			}
		}
	}
	return nil
}

// MatchException names a Python exception by its message and, where that tells nothing, its type.
// typ may be dotted (torch.cuda.OutOfMemoryError). It never returns nil: an exception that no entry
// knows is code/exception.
func (c *Catalogue) MatchException(typ, msg string) *Class {
	if cl := c.Match(typ + ": " + msg); cl != nil {
		return cl
	}
	last := typ[strings.LastIndexByte(typ, '.')+1:]
	if cl := c.byExc[last]; cl != nil {
		return cl
	}
	return c.Class("code/exception")
}

// compact folds every run of white space into one space, since terminals wrap messages.
func compact(s string) string {
	if !strings.ContainsAny(s, "\n\t\r") && !strings.Contains(s, "  ") {
		return s
	}
	return strings.Join(strings.Fields(s), " ")
}
