package snapshot

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
)

// A pickle is a program. This machine knows the few instructions that build dictionaries, lists, tuples, text
// and numbers, which are all that a snapshot needs, and refuses every other: nothing is looked up, called or
// imported. Its documents are maps, slices, int64, float64, string, bool and nil; tuples are slices.
//
// The instructions are those of Lib/pickletools.py.

// A value on the stack.
type value any

type mark struct{}

// Limits on what is read: a hostile file must not fill the memory.
const (
	maxValues = 32 << 20
	maxText   = 64 << 20
)

type machine struct {
	r      *bufio.Reader
	stack  []value
	memo   []value
	values int
	read   int64
}

var errRefused = errors.New("an instruction that a memory snapshot does not need")

// decode runs a pickle and returns its one value.
func decode(r io.Reader) (value, int64, error) {
	m := &machine{r: bufio.NewReaderSize(r, 1<<16)}
	for {
		op, err := m.byte()
		if err != nil {
			return nil, m.read, fmt.Errorf("the pickle ends at byte %d without its end: %w", m.read, io.ErrUnexpectedEOF)
		}
		if op == '.' {
			if len(m.stack) != 1 {
				return nil, m.read, errors.New("the pickle does not leave one value")
			}
			return m.stack[0], m.read, nil
		}
		if err := m.step(op); err != nil {
			return nil, m.read, fmt.Errorf("byte %d (instruction %#02x): %w", m.read, op, err)
		}
		if m.values > maxValues {
			return nil, m.read, errors.New("the pickle holds too many values")
		}
	}
}

func (m *machine) byte() (byte, error) {
	b, err := m.r.ReadByte()
	m.read++
	return b, err
}

func (m *machine) bytes(n uint64) ([]byte, error) {
	if n > maxText {
		return nil, errors.New("a text that is too long")
	}
	b := make([]byte, n)
	_, err := io.ReadFull(m.r, b)
	m.read += int64(n)
	return b, err
}

// number reads a little-endian number of n bytes.
func (m *machine) number(n int) (uint64, error) {
	var b [8]byte
	_, err := io.ReadFull(m.r, b[:n])
	m.read += int64(n)
	return binary.LittleEndian.Uint64(b[:]), err
}

func (m *machine) push(v value) error {
	m.stack = append(m.stack, v)
	m.values++
	return nil
}

// popMark takes everything above the last mark, and the mark.
func (m *machine) popMark() ([]value, error) {
	for i := len(m.stack) - 1; i >= 0; i-- {
		if _, ok := m.stack[i].(mark); ok {
			vs := append([]value(nil), m.stack[i+1:]...)
			m.stack = m.stack[:i]
			return vs, nil
		}
	}
	return nil, errors.New("no mark on the stack")
}

func (m *machine) step(op byte) error {
	switch op {
	case 0x80: // PROTO
		_, err := m.byte()
		return err
	case 0x95: // FRAME
		_, err := m.number(8)
		return err
	case '(':
		return m.push(mark{})
	case 'N':
		return m.push(nil)
	case 0x88:
		return m.push(true)
	case 0x89:
		return m.push(false)
	case 'K', 'M', 'J', 0x8a, 0x8b, 'G':
		return m.numeric(op)
	case 0x8c, 'X', 0x8d:
		n, err := m.number(map[byte]int{0x8c: 1, 'X': 4, 0x8d: 8}[op])
		if err != nil {
			return err
		}
		b, err := m.bytes(n)
		if err != nil {
			return err
		}
		return m.push(string(b))
	case ']':
		return m.push(&[]value{})
	case '}':
		return m.push(map[string]value{})
	case 0x94, 'q', 'r', 'h', 'j':
		return m.remember(op)
	}
	return m.build(op)
}

// numeric pushes a number.
func (m *machine) numeric(op byte) error {
	switch op {
	case 0x8a, 0x8b: // LONG1, LONG4: two's complement of any length
		n, err := m.number(map[byte]int{0x8a: 1, 0x8b: 4}[op])
		if err != nil {
			return err
		}
		b, err := m.bytes(n)
		if err != nil {
			return err
		}
		return m.push(long(b))
	case 'G':
		var b [8]byte
		_, err := io.ReadFull(m.r, b[:])
		m.read += 8
		if err != nil {
			return err
		}
		return m.push(math.Float64frombits(binary.BigEndian.Uint64(b[:])))
	}
	v, err := m.number(map[byte]int{'K': 1, 'M': 2, 'J': 4}[op])
	if err != nil {
		return err
	}
	if op == 'J' {
		return m.push(int64(int32(v)))
	}
	return m.push(int64(v))
}

// long reads a number of any length; one that int64 does not hold becomes a float64.
func long(b []byte) value {
	if len(b) == 0 {
		return int64(0)
	}
	be := make([]byte, len(b))
	for i, x := range b {
		be[len(b)-1-i] = x
	}
	v := new(big.Int).SetBytes(be)
	if be[0]&0x80 != 0 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	if v.IsInt64() {
		return v.Int64()
	}
	f, _ := new(big.Float).SetInt(v).Float64()
	return f
}

// remember stores the top of the stack in the memo, or fetches from it.
func (m *machine) remember(op byte) error {
	at := uint64(len(m.memo))
	if op != 0x94 {
		var err error
		if at, err = m.number(map[byte]int{'q': 1, 'r': 4, 'h': 1, 'j': 4}[op]); err != nil {
			return err
		}
	}
	if op == 'h' || op == 'j' {
		if at >= uint64(len(m.memo)) {
			return errors.New("nothing is remembered under that number")
		}
		return m.push(m.memo[at])
	}
	if len(m.stack) == 0 || at > uint64(len(m.memo)) {
		return errors.New("nothing to remember")
	}
	if at == uint64(len(m.memo)) {
		m.memo = append(m.memo, nil)
	}
	m.memo[at] = m.stack[len(m.stack)-1]
	return nil
}

// build puts values together.
func (m *machine) build(op byte) error {
	var vs []value
	var err error
	switch op {
	case 'e', 'u', 't': // APPENDS, SETITEMS, TUPLE
		vs, err = m.popMark()
	case 'a', 0x85: // APPEND, TUPLE1
		vs, err = m.take(1)
	case 's', 0x86: // SETITEM, TUPLE2
		vs, err = m.take(2)
	case 0x87:
		vs, err = m.take(3)
	case ')':
	default:
		return errRefused
	}
	if err != nil {
		return err
	}
	switch op {
	case 'a', 'e':
		return m.extend(vs)
	case 's', 'u':
		return m.set(vs)
	}
	return m.push(&vs)
}

func (m *machine) take(n int) ([]value, error) {
	if len(m.stack) < n {
		return nil, errors.New("too little on the stack")
	}
	vs := append([]value(nil), m.stack[len(m.stack)-n:]...)
	m.stack = m.stack[:len(m.stack)-n]
	return vs, nil
}

func (m *machine) extend(vs []value) error {
	if len(m.stack) == 0 {
		return errors.New("no list to add to")
	}
	l, ok := m.stack[len(m.stack)-1].(*[]value)
	if !ok {
		return errors.New("what is added to is no list")
	}
	*l = append(*l, vs...)
	return nil
}

// set adds pairs to a dictionary; keys that are no text are of no interest to a snapshot.
func (m *machine) set(vs []value) error {
	if len(m.stack) == 0 || len(vs)%2 != 0 {
		return errors.New("no dictionary to add to")
	}
	d, ok := m.stack[len(m.stack)-1].(map[string]value)
	if !ok {
		return errors.New("what is added to is no dictionary")
	}
	for i := 0; i < len(vs); i += 2 {
		if k, ok := vs[i].(string); ok {
			d[k] = vs[i+1]
		}
	}
	return nil
}
