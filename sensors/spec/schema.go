package spec

import _ "embed"

//go:embed schema.json
var schema string

// SchemaFile is the name under which a registry file's modeline finds the schema.
const SchemaFile = "sensors.schema.json"

// Modeline is the first line of a registry file that tells editors where its
// schema is.
const Modeline = "# yaml-language-server: $schema=./" + SchemaFile

// Schema is the JSON Schema (draft-07) of a registry file, for editors: it
// completes and checks form. What it accepts may still have faults that only
// Parse finds; what it refuses, Parse refuses too.
func Schema() string { return schema }
