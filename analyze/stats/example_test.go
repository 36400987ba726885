package stats_test

import (
	"fmt"
	"math"

	"postmortem/analyze/stats"
)

func ExampleLogPGreater() {
	// 11 of 11 trials with one optimizer failed, and 7 of 268 others.
	p := math.Exp(stats.LogPGreater([]stats.Stratum{{N: 279, Hits: 18, Inside: 11, Both: 11}}))
	fmt.Printf("%.2g\n", p)
	// Output: 1.9e-15
}

func ExampleCleanTrials() {
	fmt.Println(stats.CleanTrials(0.05), "trials without a failure exclude a rate of 5 %")
	// Output: 59 trials without a failure exclude a rate of 5 %
}
