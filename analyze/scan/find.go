package scan

import (
	"cmp"
	"math"
	"slices"
)

// A Rule is a region in which the outcome is frequent.
type Rule struct {
	Conditions []Condition
	Rows       []bool   // per row of the table whether it is in the region
	N, Hits    int      // rows and hits in it
	LogQ       float64  // ln of the chance of such a rule, of all of its shape, where the outcome is random
	Shapes     float64  // ln of the number of rules of its shape, by which the chance was multiplied
	Weakest    string   // the stratification under which the evidence is weakest: "none", "time" or a column
	Within     []string // "time" and the context columns within which the rule was tested, and held
	Context    bool     // all conditions are on context columns
}

// maxRules is how many rules are looked for.
const maxRules = 6

// Find returns the rules of a table, the strongest first; none where nothing can be claimed.
func Find(t *Table) []Rule {
	f := newFinder(t)
	if len(t.Columns) == 0 {
		return nil
	}
	var found []*rule
	live := f.all
	for len(found) < maxRules && live.countAnd(f.hit) >= MinHits {
		next := f.next(live)
		if len(next) == 0 {
			break
		}
		for _, r := range next {
			found = append(found, r)
			live = live.andNot(r.rows)
		}
	}
	found = f.settle(found)
	slices.SortStableFunc(found, func(a, b *rule) int { return cmp.Compare(b.score, a.score) })
	var out []Rule
	for _, r := range found {
		out = append(out, f.export(r))
	}
	return out
}

func (f *finder) export(r *rule) Rule {
	x := Rule{Rows: make([]bool, f.n), N: r.rows.count(), Hits: r.rows.countAnd(f.hit), LogQ: math.Min(0, r.logQ), Shapes: r.shapes(),
		Weakest: r.weak, Within: r.tests, Context: f.onlyContext(r)}
	for _, t := range r.terms {
		x.Conditions = append(x.Conditions, t.Condition)
	}
	slices.SortStableFunc(x.Conditions, func(a, b Condition) int { // parameters before context
		return cmp.Or(cmp.Compare(f.cols[a.Column].Role/Context, f.cols[b.Column].Role/Context), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Op, b.Op))
	})
	r.rows.each(func(i int) { x.Rows[i] = true })
	return x
}

// considered is how many of a search's rules are tested before the search gives up.
const considered = 8

// next finds the best rule on the rows that are left; it may be several narrower ones.
func (f *finder) next(live bitset) []*rule {
	v := f.view(live)
	rules := v.search()
	for _, r := range rules[:min(considered, len(rules))] {
		if v.hitsIn(r) < MinHits || r.score <= 0 {
			continue
		}
		if r = v.earn(r); !v.stands(r) {
			continue
		}
		parts := slices.DeleteFunc(f.split(r, live), func(q *rule) bool { return q != r && !v.stands(q) })
		if len(parts) == 0 {
			parts = []*rule{r}
		}
		return parts
	}
	return nil
}

// split asks whether a rule is really several narrower ones: it searches within the rule's own rows, and
// keeps what it finds when a list of it describes the rows better.
func (f *finder) split(r *rule, live bitset) []*rule {
	var kids []*rule
	rest := live.and(r.rows)
	if -f.xlx.Likelihood(rest.countAnd(f.hit), rest.count()) <= r.weight() {
		return []*rule{r} // a second rule would cost more than perfect ones could gain
	}
	for len(kids) < 3 && rest.countAnd(f.hit) >= MinHits {
		found := f.view(rest).search()
		if len(found) == 0 || found[0].score <= 0 {
			break
		}
		kid := f.rule(narrow(append(slices.Clone(r.terms), found[0].terms...)))
		left := rest.andNot(kid.rows)
		if left.equal(rest) {
			break
		}
		kids, rest = append(kids, kid), left
	}
	if len(kids) < 2 {
		return []*rule{r}
	}
	kids = f.polish(kids, live)
	best, total := []*rule{r}, f.total([]*rule{r}, live)
	lists := [][]*rule{kids}
	for i := range kids {
		lists = append(lists, slices.Delete(slices.Clone(kids), i, i+1))
	}
	for _, l := range lists {
		if s := f.total(l, live); len(l) >= 2 && s > total+1e-6 {
			best, total = l, s
		}
	}
	return best
}

// narrow makes one condition of several of the same kind on one column.
func narrow(terms []term) []term {
	var out []term
	for _, t := range terms {
		i := slices.IndexFunc(out, func(o term) bool { return o.Column == t.Column && o.Op == t.Op })
		switch {
		case i < 0:
			out = append(out, t)
		case t.Op == AtLeast && t.Code <= out[i].Code, t.Op == AtMost && t.Code >= out[i].Code:
		default:
			out[i] = t
		}
	}
	return out
}

// settle improves the list as a whole: it is polished, a rule gives way to another one that does better on
// the rows that the rest leave, and in the end every rule must stand on those rows alone.
func (f *finder) settle(rules []*rule) []*rule {
	for range 3 {
		rules = f.polish(rules, f.all)
		changed := false
		for i := len(rules) - 1; i >= 0; i-- {
			r, swapped := f.alone(rules, i)
			changed = changed || swapped
			if r == nil {
				rules, changed = slices.Delete(slices.Clone(rules), i, i+1), true
				continue
			}
			rules[i] = r
		}
		if !changed {
			break
		}
	}
	return rules
}

// alone asks a rule, or a better one in its place, to stand on the rows that no other rule has; nil if none
// does.
func (f *finder) alone(rules []*rule, i int) (r *rule, swapped bool) {
	r = rules[i]
	live := f.all
	for k, q := range rules {
		if k != i {
			live = live.andNot(q.rows)
		}
	}
	v := f.view(live)
	if v.A < MinHits {
		return nil, true
	}
	if len(rules) > 1 {
		base := f.total(rules, f.all)
		found := v.search()
		for _, c := range found[:min(2, len(found))] {
			c = v.earn(c)
			alt := slices.Clone(rules)
			alt[i] = c
			if f.total(alt, f.all) > base+1e-6 && !c.rows.equal(r.rows) {
				r, swapped = c, true
				break
			}
		}
		if v.usesContext(r) {
			r = v.earn(r)
		}
	}
	r.score = v.score(r)
	if !v.stands(r) {
		return nil, true
	}
	return r, swapped
}
