package tree

import (
	"encoding/json"
	"fmt"
	"time"
)

// Span is a duration that is written in whole milliseconds; Unknown stays -1.
type Span time.Duration

// MarshalJSON writes milliseconds.
func (s Span) MarshalJSON() ([]byte, error) {
	if s == Unknown {
		return []byte("-1"), nil
	}
	return json.Marshal(time.Duration(s).Milliseconds())
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Span) UnmarshalJSON(b []byte) error {
	var ms int64
	err := json.Unmarshal(b, &ms)
	if *s = Span(time.Duration(ms) * time.Millisecond); ms == Unknown {
		*s = Unknown
	}
	return err
}

// String is short enough for a sentence: 850ms, 5.4s, 2m5s, 1h0m0s.
func (s Span) String() string {
	d := time.Duration(s)
	switch {
	case s == Unknown:
		return "unknown"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}
