// Package failure is the catalogue of failure classes and the matcher from error text to class.
//
// The catalogue is data (catalogue.toml, embedded). Whether a line counts as error text at all is
// for the reader of that format to decide; this package only names what it is given, and knows what
// is said about a class: what it means, what causes it, what to do and how to see that it helped.
package failure

import (
	"regexp"
	"slices"
	"strings"
)

// Unknown is the class of an error that nobody recognises. It is always in a catalogue.
const Unknown = "unknown"

// A Class is one entry of the catalogue.
type Class struct {
	ID      string `toml:"id"`      // family/name; never changes its meaning
	Title   string `toml:"title"`   // a few words for tables
	Meaning string `toml:"meaning"` // one sentence
	Role    Role   `toml:"role"`    // what such a text can be in an incident; default Root
	Domain  Domain `toml:"domain"`  // whose problem it is
	Retry   Retry  `toml:"retry"`   // whether running the same again helps
	// Memory says that too much of some memory is, or may be, what the class is about: sizes multiply.
	Memory bool `toml:"memory"`
	// Poisons says that the CUDA context is dead afterwards: later errors that a dead context
	// raises (see Context) in the same process are echoes of this one.
	Poisons bool `toml:"poisons"`
	// Context says that a dead CUDA context raises this class whatever was really asked of it.
	Context bool `toml:"context"`
	// Hides lists ids of classes that this one often is in truth, and is not by its words.
	Hides []string `toml:"hides"`
	// YieldsTo lists ids of classes that explain this one when they are seen in the same incident.
	YieldsTo []string `toml:"yields_to"`

	Text       []string  `toml:"text"`       // literals in error text, any of which names the class
	Native     []string  `toml:"native"`     // literals of lines that count without a Python exception
	Line       []string  `toml:"line"`       // whole lines that count
	Patterns   []Pattern `toml:"pattern"`    // where a literal cannot say it
	Exceptions []string  `toml:"exceptions"` // Python exception types (last part of the name) that name the class when no text does
	Frames     []string  `toml:"frames"`     // one of these must stand in the traceback's frames too

	Facts   []Reading `toml:"fact"`    // numbers that the message holds
	Causes  []string  `toml:"causes"`  // most likely first
	Advice  []Advice  `toml:"advice"`  // most promising first
	Verify  string    `toml:"verify"`  // how to see that it is fixed
	Yes     []string  `toml:"yes"`     // log text that the class must name
	No      []string  `toml:"no"`      // log text that it must not, though its words are near
	Collect []string  `toml:"collect"` // what to record when the cause cannot be told
}

// A Pattern is a regular expression (RE2) that is tried where its literal stands.
type Pattern struct {
	Has    string `toml:"has"`    // a literal that every match contains, at least 4 bytes
	RE     string `toml:"re"`     // the expression; white space in the text is folded before
	Native bool   `toml:"native"` // whether it counts without a Python exception
	re     *regexp.Regexp
}

// Advice is one thing to do about a class.
type Advice struct {
	Text string `toml:"text"` // what to do
	When string `toml:"when"` // the condition under which it applies; "" for always
	// Verdicts are those on memory that it is for: overcommit, leak and so on; none for any.
	Verdicts []string `toml:"verdicts"`
	Sets     string   `toml:"sets"`   // KEY=VALUE of the setting that it asks for; VALUE is a part of the whole
	Verify   string   `toml:"verify"` // how to see that it helped; "" for the class's Verify
	Source   string   `toml:"source"` // URL of what it rests on, or "seed NNN", "recorded runs", "own judgement"
}

// A Role says what an error text of a class can be in an incident.
type Role string

// The roles.
const (
	Root     Role = "root"     // can be a cause
	Stop     Role = "stop"     // somebody or something outside ended the process; a cause unless an error stands before it
	Cascade  Role = "cascade"  // mostly follows another process's error
	Wrapper  Role = "wrapper"  // names no cause of its own
	Teardown Role = "teardown" // printed while a process or a launcher shuts down
	Note     Role = "note"     // never ends a process by itself
)

// A Domain says whose problem a class is.
type Domain string

// The domains.
const (
	Workload       Domain = "workload"       // the training program and its settings
	Environment    Domain = "environment"    // what is installed and how the process was started
	Infrastructure Domain = "infrastructure" // machine, card, network, storage
	Scheduler      Domain = "scheduler"
	Human          Domain = "human"
	Data           Domain = "data"
	Search         Domain = "study" // the hyperparameter search
	NobodyKnows    Domain = "unknown"
)

// Retry says whether running the same again helps.
type Retry string

// The answers.
const (
	RetryYes       Retry = "yes"
	RetryNo        Retry = "no"
	RetryElsewhere Retry = "elsewhere" // on another card or machine
	RetryUnknown   Retry = "unknown"
)

// A Catalogue is an ordered list of classes; earlier entries win.
type Catalogue struct {
	Classes []Class
	byID    map[string]*Class
	byExc   map[string]*Class
	text    *finder // literals of error text
	native  *finder // literals of lines that count by themselves
}

// Class returns the class of that id, or the class Unknown.
func (c *Catalogue) Class(id string) *Class {
	if cl := c.byID[id]; cl != nil {
		return cl
	}
	return c.byID[Unknown]
}

// Family is the part of the id before the slash.
func (cl *Class) Family() string {
	f, _, _ := strings.Cut(cl.ID, "/")
	return f
}

// Generic says that the class was given for a Python exception's type alone.
func (cl *Class) Generic() bool {
	return cl.ID == Unknown || len(cl.Exceptions) > 0 && len(cl.Text) == 0 && len(cl.Native) == 0 && len(cl.Patterns) == 0 && cl.Family() == "code" || cl.ID == "code/exception"
}

// Match names error text that is known to be error text, such as an exception's message. frames is the
// text of the traceback's frames, "" where there is none. It returns nil when no class's own words are
// in it.
func (c *Catalogue) Match(text, frames string) *Class {
	cl, _ := c.match(text, frames)
	return cl
}

// match also says where in the folded text the telling words begin.
func (c *Catalogue) match(text, frames string) (*Class, int) {
	text = compact(text)
	best, at := -1, 0
	c.text.find(text, func(h hit, pos int) {
		if best >= 0 && h.class >= best {
			return
		}
		if cl := &c.Classes[h.class]; cl.holds(h, text, pos, false) && cl.framed(frames) {
			best, at = h.class, pos
		}
	})
	if best < 0 {
		return nil, 0
	}
	return &c.Classes[best], at
}

// MatchNative names a log line that is not part of a Python exception, or returns nil. Only the
// lines that a class lists as native count: words such as "NaN" or "assert" in a healthy log do not.
func (c *Catalogue) MatchNative(line string) *Class {
	line = compact(line)
	best := -1
	c.native.find(line, func(h hit, pos int) {
		if (best < 0 || h.class < best) && c.Classes[h.class].holds(h, line, pos, true) {
			best = h.class
		}
	})
	if best < 0 {
		return nil
	}
	return &c.Classes[best]
}

// MatchStart names a line that begins with a class's own words, as a program that prints an error
// without its type writes it. Words of the code family are too common for that.
func (c *Catalogue) MatchStart(line string) *Class {
	cl, at := c.match(line, "")
	if cl == nil || at > 0 || cl.Family() == "code" {
		return nil
	}
	return cl
}

// MatchException names a Python exception by its message and, where that tells nothing, its type.
// typ may be dotted (torch.cuda.OutOfMemoryError). It never returns nil: an exception that no entry
// knows is code/exception.
func (c *Catalogue) MatchException(typ, msg, frames string) *Class {
	if cl := c.Match(typ+": "+msg, frames); cl != nil {
		return cl
	}
	if cl := c.byExc[typ[strings.LastIndexByte(typ, '.')+1:]]; cl != nil {
		return cl
	}
	return c.Class("code/exception")
}

// KnowsException says whether a type is listed by a class.
func (c *Catalogue) KnowsException(typ string) bool {
	return c.byExc[typ[strings.LastIndexByte(typ, '.')+1:]] != nil
}

// holds verifies a literal's hit: a pattern must match, a whole line must be whole.
func (cl *Class) holds(h hit, text string, pos int, native bool) bool {
	switch {
	case h.pattern >= 0:
		p := &cl.Patterns[h.pattern]
		return (!native || p.Native) && p.re.MatchString(text)
	case h.whole:
		return pos == 0 && len(text) == h.length
	}
	return true
}

// framed says whether the traceback's frames are those that the class asks for.
func (cl *Class) framed(frames string) bool {
	return len(cl.Frames) == 0 || slices.ContainsFunc(cl.Frames, func(f string) bool { return strings.Contains(frames, f) })
}

// compact folds every run of white space into one space, since terminals wrap messages.
func compact(s string) string {
	if !strings.ContainsAny(s, "\n\t\r") && !strings.Contains(s, "  ") {
		return strings.TrimSpace(s)
	}
	return strings.Join(strings.Fields(s), " ")
}
