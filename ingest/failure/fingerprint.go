package failure

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// folds mask what differs between two occurrences of one error, in this order.
var folds = []struct {
	re *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b`), "<id>"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?`), "<time>"},
	{regexp.MustCompile(`0x[0-9a-fA-F]+`), "<hex>"},
	{regexp.MustCompile(`\b[a-z][a-z0-9+]*://[^\s'"<>)]+`), "<url>"},
	{regexp.MustCompile(`(?:[A-Za-z]:)?(?:[/\\][\w.@%+~-]+){2,}[/\\]?`), "<path>"},
	{regexp.MustCompile(`\b[0-9a-fA-F]{12,}\b`), "<hex>"},
	{regexp.MustCompile(`[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?`), "<n>"},
}

// Fold writes an error text without what differs from one occurrence to the next: numbers, addresses,
// times, ids, paths and runs of white space.
func Fold(text string) string {
	text = compact(text)
	for _, f := range folds {
		text = f.re.ReplaceAllString(text, f.to)
	}
	return text
}

// Fingerprint is the identity of an error over runs: 12 hexadecimal digits over its class and its
// folded text. A class that the catalogue knows by its own words is its own fingerprint's text: the
// same error is worded differently by each version of a library.
func (cl *Class) Fingerprint(text string) string {
	key := cl.ID
	if cl.Generic() {
		key += "\n" + strings.ToLower(Fold(text))
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:6])
}
