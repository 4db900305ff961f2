package main

import (
	"bytes"
	"encoding/json"
)

// object is a JSON object whose keys stay in the order given: scenarios are compared with captures by
// eye, and a consumer that depends on the order must meet the order of the real agent.
type object []field

type field struct {
	key   string
	value any
}

// MarshalJSON writes the fields in order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(encode(f.key))
		b.WriteByte(':')
		b.Write(encode(f.value))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// encode is json.Marshal without HTML escapes: the real agent writes <, > and & as they are.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // only strings, numbers, objects and checked raw JSON are ever encoded
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// quoted is s as it stands between the quotes of a JSON string.
func quoted(s string) string {
	b := encode(s)
	return string(b[1 : len(b)-1])
}
