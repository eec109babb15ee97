package shell

import "strings"

// secretPath reports a file that holds credentials or accounts, by its name (B8).
// A public key is none.
func secretPath(p string) bool {
	p = strings.TrimPrefix(p, "file://")
	if p == "" || strings.HasSuffix(p, ".pub") || strings.HasSuffix(p, ".example") || strings.HasSuffix(p, ".sample") || strings.HasSuffix(p, ".template") {
		return false
	}
	switch p {
	case "/etc/passwd", "/etc/shadow", "/etc/sudoers", "/etc/gshadow":
		return true
	}
	b := strings.ToLower(p[strings.LastIndexByte(p, '/')+1:])
	switch b {
	case ".netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials", "credentials", "credentials.json", "secrets.json", "secrets.yaml", "secrets.yml", ".htpasswd", ".my.cnf", "kubeconfig", "wallet.dat", ".env":
		return true
	}
	for _, s := range [...]string{".pem", ".key", ".p12", ".pfx", ".kdbx", ".keystore", ".jks"} {
		if strings.HasSuffix(b, s) {
			return true
		}
	}
	if strings.HasPrefix(b, "id_rsa") || strings.HasPrefix(b, "id_ed25519") || strings.HasPrefix(b, "id_ecdsa") || strings.HasPrefix(b, ".env.") || strings.HasSuffix(b, ".env") || strings.HasSuffix(b, ".tfstate") {
		return true
	}
	if p[0] != '.' && !strings.Contains(p, "/.") {
		return false
	}
	for _, d := range [...]string{"/.ssh/", "/.gnupg/", "/.aws/", "/.azure/", "/.config/gcloud/", "/.kube/", "/.docker/config.json"} {
		if strings.Contains("/"+p+"/", d) {
			return b != "known_hosts" && b != "config" || strings.Contains(d, "kube")
		}
	}
	return false
}

// sendsSecret finds a file of credentials that a program sends to another
// machine: as an upload, as a copy, or from its standard input.
func sendsSecret(name string, c call) string {
	switch name {
	case "curl", "wget", "http", "https", "xh", "httpie":
		for i, a := range c.args[1:] {
			s := a.s
			if j := strings.LastIndexByte(s, '@'); j >= 0 && !strings.Contains(s, "://") { // -d @file, -F x=@file
				if secretPath(s[j+1:]) || s[j+1:] == "-" && c.in.secret != "" {
					return orText(s[j+1:], c.in.secret)
				}
			}
			for _, f := range [...]string{"-T", "--upload-file", "--post-file", "--body-file"} {
				v, ok := strings.CutPrefix(s, f+"=")
				if s == f && i+2 < len(c.args) {
					v, ok = c.args[i+2].s, true
				}
				if ok && (secretPath(v) || (v == "-" || v == ".") && c.in.secret != "") {
					return orText(v, c.in.secret)
				}
			}
		}
	case "nc", "ncat", "netcat", "socat", "telnet", "ssh", "mail", "mailx", "sendmail", "mutt":
		return c.in.secret
	case "scp", "rsync", "sftp", "rclone", "aws", "gsutil":
		pos := positional(c.args, "-P -i -o -e -F -l -c --profile --region")
		if len(pos) < 2 {
			return ""
		}
		to := pos[len(pos)-1].s
		if !strings.Contains(to, ":") || len(to) > 1 && to[1] == ':' {
			return ""
		}
		for _, p := range pos[:len(pos)-1] {
			if secretPath(p.s) {
				return p.s
			}
		}
	}
	return ""
}

func orText(path, secret string) string {
	if path == "-" || path == "." {
		return secret
	}
	return path
}

// passesOn are programs whose output holds what they read, in one form or another.
var passesOn = set("cat tac head tail base64 base32 xxd od hexdump gzip bzip2 xz zstd tar zip openssl gpg sed awk grep egrep sort cut tr rev strings jq tee dd nl paste fold uuencode")

// secretOut is the secret that a command's output carries, "" for none.
func secretOut(name string, c call) string {
	if !passesOn[name] {
		return ""
	}
	for _, a := range c.args[1:] {
		if secretPath(strings.TrimPrefix(a.s, "if=")) {
			return a.s
		}
	}
	return c.in.secret
}
