package gate

import (
	"strings"

	"gettier.dev/gettierd/daemon/action/shell"
	"gettier.dev/gettierd/ledger/lemma"
)

// remote are programs whose work is on manifests, infrastructure or data, and
// seldom on a file that the call names.
var remote = words(`npm pnpm yarn bun pip uv poetry pipenv cargo gem bundle composer apt apt-get dnf yum apk pacman brew snap nix dpkg rpm
 docker podman nerdctl docker-compose kubectl oc helm kustomize kind minikube argocd flux terraform tofu terragrunt pulumi cdk serverless sls sam ansible ansible-playbook vagrant packer
 aws gcloud gsutil az doctl heroku fly flyctl vercel netlify wrangler supabase firebase systemctl service launchctl supervisorctl pm2 nginx apachectl httpd haproxy nmcli crontab mount umount iptables nft ufw
 psql mysql mariadb sqlite3 sqlcmd duckdb mongosh mongo redis-cli valkey-cli cqlsh bq cockroach prisma drizzle-kit knex sequelize typeorm alembic flyway liquibase diesel sqlx goose dbmate migrate rails rake artisan pg_restore mongorestore mysqladmin vault consul etcdctl rabbitmqctl ssh scp rsync`)

// harmless are subcommands of those that touch nothing but a working copy.
var harmless = words(`test run start build lint format fmt check exec dev watch pack`)

// CallClass classes a tool call: by its effect and files, and as change when
// the program works on manifests, infrastructure or data.
func CallClass(a shell.Action) lemma.Class {
	class := ActionClass(a.Effect, a.Paths)
	if class != lemma.Edit {
		return class
	}
	if a.Kind == "database" || a.Kind == "mcp" {
		return lemma.Change
	}
	for _, c := range a.Shell.Commands {
		if !c.Effect.AtLeast(shell.Mutate) {
			continue
		}
		for _, w := range c.Wrappers {
			if p, _, _ := strings.Cut(w, " "); p == "sudo" || p == "doas" || p == "su" || p == "ssh" || p == "docker" || p == "podman" || p == "kubectl" {
				return lemma.Change
			}
		}
		switch {
		case c.Rule == "git.push", c.Rule == "http.write":
			return lemma.Change
		case remote[c.Program()]:
			if len(c.Argv) < 2 || !harmless[c.Argv[1]] || c.Program() == "docker" || c.Program() == "podman" {
				return lemma.Change
			}
		case c.Program() == "go" && len(c.Argv) > 1 && (c.Argv[1] == "get" || c.Argv[1] == "install" || c.Argv[1] == "mod"):
			return lemma.Change
		}
	}
	return class
}
