package failure

// minLiteral is the shortest literal: the finder looks at four bytes at a time.
const minLiteral = 4

// A hit is a literal of a class that was found.
type hit struct {
	class   int // index in the catalogue
	pattern int // index of the pattern whose literal it is, -1 for a literal of its own
	whole   bool
	length  int
}

// A finder finds all literals of a catalogue in one pass over a text: a table of the hashes of their
// first four bytes tells at which places a literal can begin, and only there are they compared.
type finder struct {
	may     [1 << 14]bool
	buckets map[uint32][]entry
}

type entry struct {
	lit string
	hit hit
}

func newFinder() *finder { return &finder{buckets: map[uint32][]entry{}} }

func (f *finder) add(lit string, h hit) {
	k := four(lit, 0)
	f.may[slot(k)] = true
	h.length = len(lit)
	f.buckets[k] = append(f.buckets[k], entry{lit, h})
}

// find calls yield for every literal in text, by place.
func (f *finder) find(text string, yield func(h hit, pos int)) {
	for i := 0; i+minLiteral <= len(text); i++ {
		k := four(text, i)
		if !f.may[slot(k)] {
			continue
		}
		for _, e := range f.buckets[k] {
			if len(text)-i >= len(e.lit) && text[i:i+len(e.lit)] == e.lit {
				yield(e.hit, i)
			}
		}
	}
}

func four(s string, i int) uint32 {
	return uint32(s[i]) | uint32(s[i+1])<<8 | uint32(s[i+2])<<16 | uint32(s[i+3])<<24
}

func slot(k uint32) uint32 { return k * 2654435761 >> 18 }
