package process

// Probes are the looks at this machine. They are for one at a time, because a
// trial takes every new child of ours for its own.
func Probes(t Trial) []Probe {
	return []Probe{
		{"kernel", func() Finding {
			name, _ := machine()
			return Finding{Status: Fine, Found: name}
		}},
		{"containment", func() Finding { return probeTree(t) }},
		{"limits", probeLimits},
		{"sockets", func() Finding {
			return Finding{Status: Doubtful, Found: "macOS does not tell whose they are", Advice: "a slow download is told from a hang by its CPU alone: use a longer --idle-timeout for it"}
		}},
		{"terminal", probeTerminal},
		{"clock", func() Finding { return probeClock(clockMonotonic, clockUptime) }},
	}
}

// probeTree says what macOS has, which is little.
func probeTree(t Trial) Finding {
	held, err := t.run(Auto)
	if err != nil {
		return Finding{Status: Broken, Found: "nothing could be started below a guard: " + err.Error(), Advice: "look at the limits below"}
	}
	return Finding{Status: Doubtful, Found: "auto takes the " + held + "; macOS has no cgroups, no subreapers and no pid namespaces",
		Advice: "a process that leaves the agent's session and whose parent ends between two looks can be missed; where that must not be, run in a Linux container"}
}

func probeLimits() Finding {
	f := Finding{Status: Fine}
	found, enough := userLimits()
	for n, text := range found {
		if n > 0 {
			f.Found += ", "
		}
		f.Found += text
	}
	if !enough {
		f.Status, f.Advice = Doubtful, "an agent that builds something needs more: raise them with ulimit -n and ulimit -u"
	}
	return f
}
