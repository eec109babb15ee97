//go:build gettier_norule

package hold

// PersonRule is off in this build, which is made by tests alone.
const PersonRule = false
