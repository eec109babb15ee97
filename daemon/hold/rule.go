//go:build !gettier_norule

package hold

// PersonRule: only a person answers (13.2, 13.3). A build with the tag
// gettier_norule switches it off, so that the tests of the attacks on it can show
// that each would succeed. Nothing else in a build can.
const PersonRule = true
