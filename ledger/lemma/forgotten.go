package lemma

// KRequestForgotten: a person had the request of a turn dropped.
const KRequestForgotten Kind = "request.forgotten"

// RequestForgotten: the blobs of these hashes were dropped, whatever entry before
// this one names them. An entry after it that names one again brings it back.
// The hashes stand in a list and not in members that end in _blob: such a member
// says that a blob is there.
type RequestForgotten struct {
	Contract string   `json:"contract"`
	Turn     string   `json:"turn"`
	Sums     []string `json:"sums"`  // 64 lower-case hex digits each
	Bytes    int64    `json:"bytes"` // as they were stored
	By       Answerer `json:"by"`
}

// Kind is request.forgotten.
func (RequestForgotten) Kind() Kind { return KRequestForgotten }
