package scan_test

import (
	"fmt"

	"postmortem/analyze/scan"
)

func ExampleFind() {
	// 60 rows; those with a size of 4 and the second kind come to grief.
	size := scan.Column{Name: "size", Values: []float64{1, 2, 4}}
	kind := scan.Column{Name: "kind", Levels: 2}
	var hit []bool
	for i := range int32(60) {
		size.Codes = append(size.Codes, i%3)
		kind.Codes = append(kind.Codes, i/3%2)
		hit = append(hit, i%3 == 2 && i/3%2 == 1)
	}
	table := &scan.Table{Hit: hit, Columns: []scan.Column{size, kind}}
	for _, r := range scan.Find(table) {
		for _, c := range r.Conditions {
			fmt.Println(table.Columns[c.Column].Name, c.Op == scan.AtLeast, c.Code, c.Set)
		}
		fmt.Println(r.Hits, "of", r.N)
	}
	// Output:
	// size true 2 []
	// kind false 0 [1]
	// 10 of 10
}
