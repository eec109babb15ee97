// Package config holds the settings of the daemon: one table of keys, the
// immutable struct that a load yields, where files live, and which changes wait
// for a person. viper is used here and nowhere else, a fresh instance per load.
//
// What a key does belongs to the room that reads it; sensors.yaml is not read
// here.
package config

import (
	"maps"
	"slices"
	"time"

	"gettier.dev/gettierd/ledger/lemma"
)

// Config is what one load yielded. It is never changed afterwards: a reload
// makes a new one, and who needs it live keeps a pointer that is swapped.
type Config struct {
	Version         int                 `mapstructure:"version"`
	Upstreams       map[string]Upstream `mapstructure:"upstreams"`
	DefaultUpstream DefaultUpstream     `mapstructure:"default_upstream"`
	Proxy           Proxy               `mapstructure:"proxy"`
	Connect         Connect             `mapstructure:"connect"`
	Gate            Gate                `mapstructure:"gate"`
	Declare         Declare             `mapstructure:"declare"`
	Inject          Inject              `mapstructure:"inject"`
	Projects        []Project           `mapstructure:"projects"`
	Sensors         Sensors             `mapstructure:"sensors"`
	Ledger          Ledger              `mapstructure:"ledger"`
	Action          Action              `mapstructure:"action"`
	Constitution    Constitution        `mapstructure:"constitution"`
	Answer          Answer              `mapstructure:"answer"`
	Log             Log                 `mapstructure:"log"`
	Audit           Audit               `mapstructure:"audit"`

	from map[string]Origin // key → where its value comes from, defaults left out
	file map[string]any    // values without environment and flags
}

// Upstream is a provider, or something that speaks like one.
type Upstream struct {
	BaseURL        string            `mapstructure:"base_url"` // with or without /v1
	Format         string            `mapstructure:"format"`   // openai | anthropic
	KeyEnv         string            `mapstructure:"key_env"`
	KeyFile        string            `mapstructure:"key_file"`
	KeyKeyring     string            `mapstructure:"key_keyring"`      // SERVICE/USER
	KeyAge         string            `mapstructure:"key_age"`          // encrypted file
	KeyAgeIdentity string            `mapstructure:"key_age_identity"` // file with what opens it
	KeyLedger      string            `mapstructure:"key_ledger"`       // name of a sealed key
	Headers        map[string]string `mapstructure:"headers"`          // names in lower case
	CAFile         string            `mapstructure:"ca_file"`
	Timeout        time.Duration     `mapstructure:"timeout"`
	Mode           string            `mapstructure:"mode"` // gate | observe
	Trusted        bool              `mapstructure:"trusted"`
}

// DefaultUpstream names the upstream of a format when the path names none.
type DefaultUpstream struct {
	OpenAI    string `mapstructure:"openai"`
	Anthropic string `mapstructure:"anthropic"`
}

// Proxy is the HTTP edge. Sizes are bytes.
type Proxy struct {
	Port             int    `mapstructure:"port"`
	BindHost         string `mapstructure:"bind_host"`
	MaxBody          int64  `mapstructure:"max_body"`
	MaxInflightBytes int64  `mapstructure:"max_inflight_bytes"`
	Limit            int    `mapstructure:"limit"`
}

// Connect is about tunnels of clients that take the proxy for an HTTPS proxy.
type Connect struct {
	Enabled          bool     `mapstructure:"enabled"`
	AIVendors        []string `mapstructure:"ai_vendors"` // names of gettier's table, or hosts
	Allow            []string `mapstructure:"allow"`      // HOST, *.HOST or HOST:PORT
	Deny             []string `mapstructure:"deny"`
	MarketplaceAllow []string `mapstructure:"marketplace_allow"`
}

// Gate is the policy on premises.
type Gate struct {
	Mode               string        `mapstructure:"mode"` // ask | watch
	Classes            Classes       `mapstructure:"classes"`
	HoldOnUnverifiable bool          `mapstructure:"hold_on_unverifiable"`
	AnnotateGaps       bool          `mapstructure:"annotate_gaps"`
	ClientWait         time.Duration `mapstructure:"client_wait"`
	HoldTTL            time.Duration `mapstructure:"hold_ttl"`
	Budget             Budget        `mapstructure:"budget"`
}

// Classes is the mode of each class.
type Classes struct {
	Explore     lemma.Mode `mapstructure:"explore"`
	Edit        lemma.Mode `mapstructure:"edit"`
	Change      lemma.Mode `mapstructure:"change"`
	Destructive lemma.Mode `mapstructure:"destructive"`
}

// Of returns the mode of c; an unknown class has that of destructive.
func (c Classes) Of(class lemma.Class) lemma.Mode {
	switch class {
	case lemma.Explore:
		return c.Explore
	case lemma.Edit:
		return c.Edit
	case lemma.Change:
		return c.Change
	}
	return c.Destructive
}

// Budget is how many premise holds there may be.
type Budget struct {
	PerHour int `mapstructure:"per_hour"`
	PerDay  int `mapstructure:"per_day"`
}

// Declare is about the declare pass.
type Declare struct {
	At         string        `mapstructure:"at"` // action | prompt | both
	MaxTokens  int           `mapstructure:"max_tokens"`
	MaxPerTurn int           `mapstructure:"max_per_turn"`
	Reuse      time.Duration `mapstructure:"reuse"` // how long a declaration covers later turns, 0 never
}

// Inject is about the facts block.
type Inject struct {
	MaxBytes int `mapstructure:"max_bytes"`
}

// Project is a registered root.
type Project struct {
	Name string `mapstructure:"name"`
	Root string `mapstructure:"root"` // absolute, links resolved
}

// Sensors is about registries and the runner.
type Sensors struct {
	Files       []string `mapstructure:"files"` // user-level registries; empty means the default file
	AutoApprove bool     `mapstructure:"auto_approve"`
	Width       int      `mapstructure:"width"`
	RunsAs      string   `mapstructure:"runs_as_unavailable"` // self | hold
}

// Ledger is about the record.
type Ledger struct {
	Path            string        `mapstructure:"path"`         // empty means ledger.db in the state directory
	SealKeyring     string        `mapstructure:"seal_keyring"` // SERVICE/USER of the age identity; empty: a file
	Retain          time.Duration `mapstructure:"retain"`       // age at which blobs go, 0 never
	FailOpenExplore bool          `mapstructure:"fail_open_explore"`
	ToldTTL         ToldTTL       `mapstructure:"told_ttl"`
}

// ToldTTL is how long told facts last, by scope.
type ToldTTL struct {
	Host    time.Duration `mapstructure:"host"`
	Project time.Duration `mapstructure:"project"`
}

// Action is the action gate's part.
type Action struct {
	// Enforce is how much of its rulings is carried out: full, hard_deny, shadow.
	Enforce string `mapstructure:"enforce"`
	// Policy are the gate's rules, the built-in ones where it names no file.
	Policy struct {
		File        string `mapstructure:"file"`
		Fingerprint string `mapstructure:"fingerprint"`
	} `mapstructure:"policy"`
	// Shadow is who is asked beside the gate, without any say.
	Shadow struct {
		URL    string `mapstructure:"url"`
		Model  string `mapstructure:"model"`
		KeyEnv string `mapstructure:"key_env"`
		Policy string `mapstructure:"policy"`
	} `mapstructure:"shadow"`
}

// Constitution is the evaluator of meaning beside the constitution's phrases.
type Constitution struct {
	URL     string        `mapstructure:"url"`
	Model   string        `mapstructure:"model"`
	KeyEnv  string        `mapstructure:"key_env"`
	Timeout time.Duration `mapstructure:"timeout"`
}

// Answer is what a person's answer has to prove.
type Answer struct {
	Require string `mapstructure:"require"` // tty
}

// Log is the daemon's own log.
type Log struct {
	Level string `mapstructure:"level"` // error | warn | info | debug
}

// Origin is where a value comes from.
type Origin struct {
	Kind string // file | env | flag | default
	Name string // variable, flag, or file:line
}

// Origin returns where the value of key comes from.
func (c *Config) Origin(key string) Origin {
	if o, ok := c.from[key]; ok {
		return o
	}
	return Origin{Kind: "default"}
}

// Setting is one key as it stands, for a listing.
type Setting struct {
	Key     string
	Value   string // headers masked
	Default bool
	Origin  Origin
	Live    bool
	Doc     string
}

// Settings lists every key in the table's order.
func (c *Config) Settings() []Setting {
	vals := values(c)
	var out []Setting
	for _, name := range ordered(vals) {
		k := keyOf(name)
		o := c.Origin(name)
		out = append(out, Setting{Key: name, Value: display(k, vals[name]), Default: o.Kind == "default", Origin: o, Live: k.Live, Doc: k.Doc})
	}
	return out
}

// ordered sorts concrete keys as the table has them, upstreams by name.
func ordered(vals map[string]any) []string {
	rank := make(map[string]int, len(Keys))
	for i, k := range Keys {
		rank[k.Name] = i
	}
	names := slices.Collect(maps.Keys(vals))
	slices.SortFunc(names, func(a, b string) int {
		ua, ub := upstreamOf(a), upstreamOf(b)
		if ua != ub && ua != "" && ub != "" {
			if ua < ub {
				return -1
			}
			return 1
		}
		if d := rank[keyOf(a).Name] - rank[keyOf(b).Name]; d != 0 {
			return d
		}
		return 0
	})
	return names
}

// Audit is about copies of the log's checkpoints outside it.
type Audit struct {
	Snapshots Snapshots `mapstructure:"snapshots"`
	Witness   string    `mapstructure:"witness"` // places as package ledger/witness spells them, with commas between
	S3        S3        `mapstructure:"s3"`
}

// S3 is how a place s3: of Witness is written to. One of the Key places holds the
// secret access key.
type S3 struct {
	Region      string `mapstructure:"region"`
	AccessKeyID string `mapstructure:"access_key_id"`
	KeyEnv      string `mapstructure:"key_env"`
	KeyFile     string `mapstructure:"key_file"`
	KeyKeyring  string `mapstructure:"key_keyring"`
	KeyLedger   string `mapstructure:"key_ledger"`
}

// Snapshots is where checkpoints are kept, and how often.
type Snapshots struct {
	Dir   string        `mapstructure:"dir"` // absolute; empty means nowhere
	Every time.Duration `mapstructure:"every"`
}
