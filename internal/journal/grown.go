package journal

// Grown is closed when something has been written since the call, or when the
// log is closed. Whoever follows the file takes the channel first and reads to
// the end then, so that nothing is missed. It costs a log that nobody follows
// one load a write.
func (l *Log) Grown() <-chan struct{} {
	for {
		if there := l.grown.Load(); there != nil {
			return *there
		}
		fresh := make(chan struct{})
		if !l.grown.CompareAndSwap(nil, &fresh) {
			continue
		}
		if l.over.Load() { // perhaps since before anybody could see the channel
			l.tellGrown()
		}
		return fresh
	}
}

func (l *Log) tellGrown() {
	if l.grown.Load() == nil {
		return
	}
	if waiting := l.grown.Swap(nil); waiting != nil {
		close(*waiting)
	}
}
