package analyze

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"postmortem/analyze/stats"
	"postmortem/ingest"
	"postmortem/ingest/failure"
	"postmortem/ingest/timeline"
)

// a message's numbers, in MiB
func message(kv ...any) map[string]float64 {
	m := map[string]float64{}
	for i := 0; i < len(kv); i += 2 {
		v, ok := kv[i+1].(float64)
		if !ok {
			v = float64(kv[i+1].(int))
		}
		m[kv[i].(string)+"_bytes"] = v * mib
	}
	return m
}

// TestJudge holds the reference's worked cases, and public ones.
func TestJudge(t *testing.T) {
	const G = 1024.0
	for _, tt := range []struct {
		name         string
		m            map[string]float64
		want         MemoryVerdict
		limit        string
		live         float64 // 0: not asked
		contributing []string
	}{
		{"oom_fragmented", message("requested", 1495, "allocated", 6083, "reserved_unallocated", 3021, "allowed", 10240, "free", 132659, "capacity", 139.8*G, "process", 9851), Fragmentation, "allowed", .740, nil},
		{"leak/train.log", message("requested", 390, "allocated", 22047, "reserved_unallocated", 2191, "allowed", 24576, "free", 118170, "capacity", 139.8*G, "process", 24975), Capacity, "allowed", .913, nil},
		{"oom_plain", message("requested", 1024, "allocated", 7250, "reserved_unallocated", 25, "allowed", 8192, "free", 133417, "capacity", 139.8*G, "process", 8018, "process_672", 850, "process_673", 850), Capacity, "allowed", 1.010, nil},
		{"oom_card_full", message("requested", 3072, "allocated", 141394, "reserved_unallocated", 25, "free", 987, "capacity", 139.8*G, "process", 142162), Capacity, "card", 1.014, nil},
		{"memory_summary", message("requested", 3072, "allocated", 81, "reserved_unallocated", 25, "allowed", 2048, "free", 142295, "capacity", 139.8*G, "process", 848), TooBig, "allowed", 0, nil},
		{"caught, 16 GiB", message("requested", 16384, "allocated", 81, "reserved_unallocated", 25, "allowed", 6144, "free", 140000, "capacity", 139.8*G, "process", 848), TooBig, "allowed", 0, nil},
		{"caught, 2 GiB", message("requested", 2048, "allocated", 4178, "reserved_unallocated", 25, "allowed", 6144, "free", 136000, "capacity", 139.8*G, "process", 4970), Capacity, "allowed", 1.013, nil},
		{"snapshot", message("requested", 16, "allocated", 4014.08, "reserved_unallocated", 79, "allowed", 4096, "free", 138311, "capacity", 139.8*G, "process", 4833), Capacity, "allowed", .984, nil},
		{"hf_trainer_oom", message("requested", 192, "allocated", 2723.8, "reserved_unallocated", 276.6, "allowed", 3072, "free", 138000, "capacity", 139.8*G, "process", 3737), Capacity, "allowed", .949, nil},
		{"before, worker 1", message("requested", 256, "allocated", 11.2*G, "reserved_unallocated", 16.26, "free", 80.81, "capacity", 139.8*G, "process", 11.88*G, "process_407", 108.51*G, "process_441", 14.02*G), Overcommit, "card", 0, nil},
		{"before, worker 3 trial 79", message("requested", 160, "allocated", 1005, "reserved_unallocated", 260, "free", 100, "capacity", 139.8*G, "process", 2050, "process_407", 108.51*G), Overcommit, "card", .8535, []string{partFragmentation}},
		{"given back meanwhile", message("requested", 20, "allocated", 3000, "reserved_unallocated", 30, "free", 22.3, "capacity", 139.8*G, "process", 3790, "process_407", 130*G), Overcommit, "card", 0, []string{partRace}},
		// pytorch/pytorch issue 35901: a request of half the limit, and a pool that is nearly empty.
		{"pytorch 35901", message("requested", 10.84*G, "allocated", 1.06*G, "reserved", 12.53*G, "free", 10.26*G, "capacity", 23.65*G), Fragmentation, "card", .5222, nil},
		// pytorch/pytorch issue 152135: in a container the process itself is listed by number.
		{"pytorch 152135", message("requested", .2441*G, "allocated", 74.77*G, "reserved", 78.64*G, "free", .1023*G, "capacity", 79.25*G, "process_1007710", 79.14*G), Capacity, "card", .9527, nil},
		// No list of processes: what is neither free nor its own is foreign, less a context.
		{"karfly 80", message("requested", .031*G, "allocated", 6.3*G, "reserved", 6.44*G, "free", .025*G, "capacity", 10.73*G), Overcommit, "card", 0, nil},
		{"iPASSR 9", message("requested", 10.73*G, "allocated", 2*G, "reserved", 2.1*G, "free", 4*G, "capacity", 8*G), TooBig, "card", 0, nil},
		{"pytorch 175431", message("requested", 2, "allocated", 80*G, "reserved", 84*G, "free", 203*G, "capacity", 288*G), Undetermined, "card", 0, nil},
		{"TheRock 2118", message("requested", 2, "allocated", 1000, "reserved", 1072, "allowed", 1.05*G, "free", 276*G, "capacity", 288*G), Capacity, "allowed", .932, nil},
		{"no numbers", message("requested", 20), Undetermined, "", 0, nil},
		{"JAX, more than the card has", message("requested", 37.27*G, "capacity", 23.7*G), TooBig, "card", 0, nil},
		{"cut after the private pools", message("requested", 2*G, "allocated", 70*G, "private_pools", 12*G, "reserved_unallocated", 6.9*G, "free", 1.5*G, "capacity", 79.1*G, "process", 77.59*G), Fragmentation, "card", .7653, nil},
		{"a sentinel is no number", message("requested", 20, "allocated", 5*G, "reserved_unallocated", 100, "free", 10, "capacity", 8*G, "process", 17179869184*G), Overcommit, "card", 0, nil},
	} {
		s := newShortage(tt.m)
		s.complete(unknown)
		j := s.judge(false, 0)
		if j.verdict != tt.want || j.limit != tt.limit || !slices.Equal(j.contributing, tt.contributing) {
			t.Errorf("%s: %s by %s with %v, want %s by %s with %v: %v", tt.name, j.verdict, j.limit, j.contributing, tt.want, tt.limit, tt.contributing, j.numbers)
		}
		if tt.live > 0 && math.Abs(j.numbers["live_ratio"]-tt.live) > .0015 {
			t.Errorf("%s: live ratio %v, want %v", tt.name, j.numbers["live_ratio"], tt.live)
		}
	}
	for name, want := range map[string][3]float64{"oom_fragmented": {6083, 3021, .332}, "leak": {22047, 2191, .090}, "hf_trainer_oom": {2723.8, 276.6, .092}, "pytorch 35901": {1.06 * G, 11.47 * G, .9154}} {
		s := newShortage(message("requested", 100, "allocated", want[0], "reserved_unallocated", want[1], "free", 50, "capacity", 80*G))
		if fi := s.judge(false, 0).numbers["fragmentation_index"]; math.Abs(fi-want[2]) > .0006 {
			t.Errorf("%s: fragmentation index %v, want %v", name, fi, want[2])
		}
	}
	s := newShortage(message("requested", 390, "allocated", 22047, "reserved_unallocated", 2191, "allowed", 24576, "free", 118170))
	if j := s.judge(true, .009); j.verdict != Leak {
		t.Errorf("the same after steady growth: %s", j.verdict)
	}
	if j := s.judge(true, .9); j.verdict == Leak {
		t.Error("growth of slack is no leak")
	}
}

// TestCutMessage infers the slack that a cut message does not hold.
func TestCutMessage(t *testing.T) {
	whole := newShortage(message("requested", 20, "allocated", 1000, "reserved_unallocated", 100, "process", 1863, "free", 10, "capacity", 81920))
	cut := newShortage(message("requested", 20, "allocated", 1000, "process", 2000, "free", 10, "capacity", 81920))
	cut.complete(overheadOf([]shortage{whole, cut}))
	shorter := newShortage(message("requested", 20, "process", 2000, "process_9", 70000, "free", 10, "capacity", 81920))
	shorter.complete(763 * mib)
	if j := shorter.judge(false, 0); j.verdict != Overcommit || !slices.Equal(shorter.inferred, []string{"reserved_bytes"}) {
		t.Errorf("cut before what is live: %+v", j)
	}
	if math.Abs(cut.slack-237*mib) > 1 || !slices.Equal(cut.inferred, []string{"reserved_unallocated_bytes"}) {
		t.Errorf("slack %v, inferred %v", cut.slack/mib, cut.inferred)
	}
}

// TestMemoryOfTheNight holds what is known of the recorded run.
func TestMemoryOfTheNight(t *testing.T) {
	f := Run(nightly(t), failure.Default())
	m := f.Memory
	count := map[MemoryVerdict]int{}
	parts := map[string]int{}
	hidden := map[string]int{}
	for _, x := range m.PerIncident {
		count[x.Verdict]++
		for _, c := range x.Contributing {
			parts[c]++
		}
		if x.Hidden != "" {
			hidden[x.Hidden]++
		}
	}
	if m.Verdict != Overcommit || count[Overcommit] != 37 || parts[partFragmentation] != 5 || parts[partRace] != 3 {
		t.Errorf("%s, %v, %v", m.Verdict, count, parts)
	}
	if hidden[hiddenConfirmed] == 0 {
		t.Errorf("hidden: %v; trial 33 died of it", hidden)
	}
	if a := m.Alignment; a == nil || a.Incidents != 40 || math.Abs(a.P-.0069) > .0005 || a.MeanRiseBytes < 5*gib {
		t.Errorf("alignment %+v", a)
	}
	for _, a := range m.Alignments {
		if a.Class == "cuda/device-side-assert" && a.P < 0.1 {
			t.Errorf("asserts line up with memory: %+v", a)
		}
	}
	for _, p := range m.PerProcess {
		if p.Growth != nil && p.Growth.Sustained {
			t.Errorf("worker %s grows: %+v", p.Worker, p.Growth)
		}
	}
}

// TestLeak reads a made log of one process that leaks until its limit, in GB that mean GiB.
func TestLeakAndUnits(t *testing.T) {
	start := time.Date(2026, 11, 20, 18, 0, 0, 0, time.UTC)
	tl := &timeline.Timeline{Sources: []timeline.Source{{Name: "train.log"}}, Streams: []timeline.Stream{{Name: "train"}}, Processes: []timeline.Process{{Start: start}}}
	const n = 40
	for i := range n {
		v := 4e9 + float64(i)*0.4e9 // 4.0 to 19.6 GB as written, GiB as meant
		tl.Allocs = append(tl.Allocs, timeline.Alloc{Time: start.Add(time.Duration(i) * time.Minute), Pos: timeline.Pos{Line: i + 1}, Trial: timeline.NoTrial, AllocatedBytes: int64(v), ReservedBytes: int64(v + 1e9), InactiveBytes: -1, Binary: math.Pow(1.024, 3)})
	}
	facts := []timeline.Fact{{Name: "requested_bytes", Value: .5 * gib}, {Name: "allocated_bytes", Value: 19.6 * gib}, {Name: "reserved_unallocated_bytes", Value: 1 * gib}, {Name: "allowed_bytes", Value: 21 * gib}, {Name: "free_bytes", Value: 50 * gib}, {Name: "capacity_bytes", Value: 80 * gib}, {Name: "process_bytes", Value: 21.1 * gib}}
	tl.Events = []timeline.Event{{Kind: timeline.Failure, Class: outOfMemory, Form: timeline.FormTraceback, Text: "CUDA out of memory", Fatal: true, Time: start.Add(n * time.Minute), Pos: timeline.Pos{Line: n + 2}, Trial: timeline.NoTrial, Facts: facts}}
	f := Run(tl, failure.Default())
	if f.Memory.Verdict != Leak || len(f.Memory.PerProcess) != 1 {
		t.Fatalf("%+v", f.Memory)
	}
	g := f.Memory.PerProcess[0].Growth
	if !g.Sustained || math.Abs(g.BytesPerHour-60*.4*gib) > .01*gib {
		t.Errorf("%v GiB an hour, want 24", g.BytesPerHour/gib)
	}
	at, err := time.Parse(time.RFC3339, g.Forecast.At)
	if err != nil || at.Sub(start.Add(40*time.Minute)).Abs() > 2*time.Minute || g.Forecast.From != n/2 {
		t.Errorf("forecast %+v", g.Forecast)
	}
}

// TestRecordedLeak reads the recorded one.
func TestGalleryMemory(t *testing.T) {
	for file, want := range map[string]MemoryVerdict{"oom_plain.log": Capacity, "oom_card_full.log": Capacity, "oom_fragmented.log": Fragmentation, "memory_summary.log": TooBig,
		"snapshot.log": Capacity, "hf_trainer_oom.log": Capacity, "oom_caught_recovered.log": Undetermined} {
		tl, err := ingest.Read(context.Background(), ingest.Request{Paths: []string{"../testdata/gallery/" + file}, Catalogue: failure.Default()})
		if err != nil {
			t.Fatal(err)
		}
		if m := Run(tl, failure.Default()).Memory; m.Verdict != want {
			t.Errorf("%s: %s %v, want %s: %+v", file, m.Verdict, m.Reasons, want, m.PerIncident)
		}
	}
}

// TestMemoryAfter holds the run after the fix: fewer, all of one kind, and no growth that restarts explain.
func TestMemoryAfter(t *testing.T) {
	tl, err := ingest.Read(context.Background(), ingest.Request{Paths: []string{"../testdata/after"}, Catalogue: failure.Default()})
	if err != nil {
		t.Fatal(err)
	}
	m := Run(tl, failure.Default()).Memory
	count, races := map[MemoryVerdict]int{}, 0
	for _, x := range m.PerIncident {
		count[x.Verdict]++
		if slices.Contains(x.Contributing, partFragmentation) {
			t.Errorf("%s: fragmentation contributes: %v", x.Incident, x.Numbers)
		}
		if slices.Contains(x.Contributing, partRace) {
			races++
		}
	}
	if m.Verdict != Overcommit || count[Overcommit] != 11 || len(m.PerIncident) != 11 || races != 1 {
		t.Errorf("%s %v, %d races", m.Verdict, count, races)
	}
	for _, p := range m.PerProcess {
		if p.Growth != nil && p.Growth.Sustained {
			t.Errorf("worker %s grows: %+v", p.Worker, p.Growth)
		}
	}
}

// TestRecordedLeak checks the recorded leak: G10 of the reference, the slope, and the forecast from half of
// the readings.
func TestRecordedLeak(t *testing.T) {
	tl, err := ingest.Read(context.Background(), ingest.Request{Paths: []string{"../testdata/leak"}, Catalogue: failure.Default()})
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(tl, failure.Default())
	r.incidents()
	r.fates()
	all := r.logged().series
	if len(all) != 1 || len(all[0].at) != 52 {
		t.Fatalf("%d series", len(all))
	}
	live, slack := stats.Grow(all[0].at, all[0].allocated), stats.Grow(all[0].at, all[0].slack)
	if live.S != 1326 || math.Abs(live.Variance-16059.333) > .001 || math.Abs(live.Z-10.456) > .001 || math.Abs(live.Slope/1e9-.30211) > .0001 {
		t.Errorf("allocated %+v", live)
	}
	// The reference has S = 91: it subtracts decimal fractions, in which 2.50 − 0.45 and 3.05 − 1.00 differ.
	if slack.S != 89 || math.Abs(slack.Z-.6947) > .001 {
		t.Errorf("slack %+v", slack)
	}
	m := r.memory()
	if m.Verdict != Leak {
		t.Errorf("%s %v", m.Verdict, m.Reasons)
	}
	i := slices.IndexFunc(m.PerProcess, func(p ProcessMemory) bool { return p.Growth != nil }) // the log does not say its pid
	if i < 0 || m.PerProcess[i].Verdict != Leak {
		t.Fatalf("%+v", m.PerProcess)
	}
	g := m.PerProcess[i].Growth
	at, _ := time.Parse(time.RFC3339, g.Forecast.At)
	died, _ := time.Parse(time.RFC3339, g.Forecast.Died)
	if d := at.Sub(died).Abs(); d > 5*time.Second || g.Forecast.From != 26 {
		t.Errorf("forecast %+v is off by %v", g.Forecast, d)
	}
}

func TestSnapshot(t *testing.T) {
	tl, err := ingest.Read(context.Background(), ingest.Request{Paths: []string{"../testdata/gallery/oom_snapshot.pickle"}, Catalogue: failure.Default()})
	if err != nil {
		t.Fatal(err)
	}
	s := Run(tl, failure.Default()).Memory.Snapshots[0]
	if s.SplitBytes != 82837504 || s.ReleasableBytes != 0 || s.FreeBlocks != 32 || s.LargestBytes != 7340032 || math.Abs(s.External-.911) > .001 || math.Abs(s.Index-.019) > .001 {
		t.Errorf("%+v", s)
	}
	if len(s.Pools) != 2 || s.Pools[0] != (PoolFree{"large", 81788928, 7340032}) || s.Pools[1] != (PoolFree{"small", 1048576, 558080}) {
		t.Errorf("%+v", s.Pools)
	}
	if len(s.Refused) != 1 || !s.Refused[0].Fits || len(s.Owners) == 0 {
		t.Errorf("%+v %+v", s.Refused, s.Owners)
	}
}

// TestFootprint recovers a made footprint: for each model a line in batch × length, with noise.
func TestFootprint(t *testing.T) {
	var trials []made
	for i := range 160 {
		trials = append(trials, made{params: map[string]any{"batch": 8 * (1 + i*7%8), "length": 128 * (1 + i*5%4), "model": []string{"base", "large"}[i/3%2], "lr": float64(i%13) / 13}, state: timeline.Complete, seconds: 20, process: 0})
	}
	tl := study(trials)
	tl.Streams = []timeline.Stream{{Name: "w"}}
	tl.Processes = []timeline.Process{{PID: 7, Start: tl.Studies[0].Trials[0].Start, End: tl.Studies[0].Trials[159].End}}
	tenant, card := timeline.Tenant{PID: 7}, timeline.GPU{TotalBytes: 80 * gib}
	need := func(i int) float64 {
		x := float64(trials[i].params["batch"].(int) * trials[i].params["length"].(int))
		if trials[i].params["model"] == "large" {
			return 4*gib + 600e3*x
		}
		return 2*gib + 200e3*x
	}
	for i := range trials {
		at := tl.Studies[0].Trials[i].Start.Add(5 * time.Second)
		noise := float64(i*37%11-5) / 5 * .2 * gib
		tenant.Time, tenant.UsedBytes = append(tenant.Time, at), append(tenant.UsedBytes, int64(need(i)+noise))
		card.Time, card.UsedBytes, card.FreeBytes = append(card.Time, at), append(card.UsedBytes, tenant.UsedBytes[i]), append(card.FreeBytes, 80*gib-tenant.UsedBytes[i])
	}
	tl.Tenants, tl.GPUs = []timeline.Tenant{tenant}, []timeline.GPU{card}
	m := Run(tl, failure.Default()).Memory
	if len(m.Footprints) != 1 {
		t.Fatalf("%+v", m.Footprints)
	}
	f := m.Footprints[0]
	if !slices.Equal(f.Sizes, []string{"batch", "length"}) || f.By != "model" || len(f.Lines) != 2 || f.ErrorBytes > .25*gib {
		t.Errorf("%+v", f)
	}
	for i, want := range []float64{200e3, 600e3} {
		if l := f.Lines[i]; math.Abs(l.Slope-want) > .05*want {
			t.Errorf("%s: %v bytes a unit, want %v", l.Value, l.Slope, want)
		}
	}
	if m.Fit == nil || m.Fit.Trials != 160 || m.Fit.Workers < 3 {
		t.Errorf("%+v", m.Fit)
	}
	if g := RunWith(tl, failure.Default(), Asked{CapacityBytes: 8 * gib}).Memory.Fit; !g.Asked || g.Workers != 0 || g.Fitting > 0.8 {
		t.Errorf("%+v", g)
	}
}

// TestLeakWithoutFailure: a process that grows by much of its own size and has not failed yet, with nothing to tell
// its limit.
func TestLeakWithoutFailure(t *testing.T) {
	start := time.Date(2026, 11, 20, 18, 0, 0, 0, time.UTC)
	tl := &timeline.Timeline{Sources: []timeline.Source{{Name: "w"}}, Streams: []timeline.Stream{{Name: "w"}}, Processes: []timeline.Process{{Start: start}}}
	for i := range 30 {
		v := int64(4*gib + float64(i)*.15*gib)
		tl.Allocs = append(tl.Allocs, timeline.Alloc{Time: start.Add(time.Duration(i) * time.Minute), Pos: timeline.Pos{Line: i + 1}, Trial: timeline.NoTrial, AllocatedBytes: v, ReservedBytes: v + 1<<28, InactiveBytes: -1, Binary: 1})
	}
	if m := Run(tl, failure.Default()).Memory; m.Verdict != Leak || !slices.Equal(m.Reasons, []string{"growth:1"}) || m.PerProcess[0].Growth.LimitBytes != 0 || m.PerProcess[0].Growth.Forecast != nil {
		t.Errorf("%s %v %+v", m.Verdict, m.Reasons, m.PerProcess)
	}
	for i := range tl.Allocs {
		tl.Allocs[i].AllocatedBytes = 4*gib + int64(i)<<25 // a quarter in all, of which a warm-up may be the cause
	}
	if m := Run(tl, failure.Default()).Memory; m.Verdict != Undetermined {
		t.Errorf("%s %v", m.Verdict, m.Reasons)
	}
}

// TestManySlowLeaks: eight workers that each leak a little fill a card together. Each message by itself looks
// like too many on one card.
func TestManySlowLeaks(t *testing.T) {
	start := time.Date(2026, 11, 20, 18, 0, 0, 0, time.UTC)
	tl := &timeline.Timeline{Sources: []timeline.Source{{Name: "workers"}}}
	const workers, n = 8, 60
	facts := func(leak float64) []timeline.Fact {
		f := []timeline.Fact{{Name: "requested_bytes", Value: .2 * gib}, {Name: "allocated_bytes", Value: leak}, {Name: "reserved_unallocated_bytes", Value: .1 * gib}, {Name: "free_bytes", Value: .1 * gib}, {Name: "capacity_bytes", Value: 80 * gib}, {Name: "process_bytes", Value: leak + .9*gib}}
		for w := range workers - 1 {
			f = append(f, timeline.Fact{Name: "process_" + []string{"101", "102", "103", "104", "105", "106", "107"}[w] + "_bytes", Value: 9.9 * gib})
		}
		return f
	}
	for w := range workers {
		tl.Streams = append(tl.Streams, timeline.Stream{Name: string(rune('a' + w))})
		tl.Processes = append(tl.Processes, timeline.Process{Stream: w, PID: 100 + w, Start: start, End: start.Add(3 * time.Hour)})
		for i := range n {
			live := 4*gib + float64(i)*.085*gib + float64((i*7+w)%5)*.01*gib
			tl.Allocs = append(tl.Allocs, timeline.Alloc{Time: start.Add(time.Duration(i) * 2 * time.Minute), Pos: timeline.Pos{Line: i + 1}, Stream: w, Process: w, Trial: timeline.NoTrial, Phase: "start", AllocatedBytes: int64(live), ReservedBytes: int64(live + .1*gib), InactiveBytes: -1, Binary: 1})
		}
	}
	tl.Events = []timeline.Event{{Kind: timeline.Failure, Class: outOfMemory, Form: timeline.FormTraceback, Text: "CUDA out of memory", Fatal: true, Time: start.Add(2 * time.Hour), Pos: timeline.Pos{Line: n + 5}, Stream: 0, Process: 0, Trial: timeline.NoTrial, Facts: facts(9 * gib)}}
	m := Run(tl, failure.Default()).Memory
	if m.Verdict != Leak || !slices.Equal(m.PerIncident[0].Contributing, []string{partOvercommit}) {
		t.Errorf("%s, %+v", m.Verdict, m.PerIncident)
	}
	for i := range tl.Allocs { // the same without the growth
		tl.Allocs[i].AllocatedBytes = 9*gib + int64(i*37%11)<<20
		tl.Allocs[i].ReservedBytes = tl.Allocs[i].AllocatedBytes + 100<<20
	}
	if m := Run(tl, failure.Default()).Memory; m.Verdict != Overcommit {
		t.Errorf("without growth: %s, %+v", m.Verdict, m.PerIncident)
	}
}
