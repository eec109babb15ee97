package gate

import "strings"

// sense is a set of the roles that a word can play in a prompt. They are everyday
// words of tickets, not a language model: a miss costs a declaration, which the
// first action makes up for.
type sense uint32

const (
	filler   sense = 1 << iota // says nothing by itself
	asks                       // begins a question
	subject                    // after a word that asks, makes it a question
	looks                      // wants something looked at, told or thought about
	does                       // wants something done
	runs                       // do it to a service, and the machine changes
	services                   // what is started and stopped
	checks                     // what only reports, when it is run
	platform                   // what code runs on
	data                       // what keeps data, and how it is shaped
	depends                    // manifests, package managers, runtimes
	settings                   // configuration, secrets, limits
	places                     // environments that others use
	shared                     // what others see: pull requests, releases
	destroys                   // lose it
	clears                     // lose it, when it is much or precious
	precious                   // what is not had back
	sweeping                   // all of it
	bulk                       // what sweeping words make much of
	code                       // after an operative word, the word names a part of the code
	prose                      // wording, comments, docs
	programs                   // a command that stands for itself
	manager                    // a package manager
	risky                      // may begin one of the forceful spellings
	spelled                    // a program that nobody begins a sentence with
)

// lexicon holds every word that means something here.
var lexicon = func() map[string]sense {
	m := map[string]sense{}
	for s, list := range map[sense]string{
		filler: `please pls hi hello hey ok okay so and but now then also just only quick quickly curious well great thanks thank thx right sure yes yeah no kindly again finally first next afterwards maybe perhaps still hmm oh ah alright actually simply directly go-ahead
 lets let's`,
		asks:    `what why how where when which who whose whats what's why's how's where's who's is are was were does did do has have had am isn't aren't doesn't don't didn't wasn't can could would will should any wonder wondering`,
		subject: `we you i they he she it this that these those there the any all my our your its a an one anyone someone somebody anybody anything something everything redis docker postgres nginx deletes`,
		looks: `explain describe list find search grep summarize summarise review compare check inspect read count locate understand analyze analyse investigate tell look examine audit assess evaluate estimate diagnose debug profile identify verify validate rate trace see get open cat tail query view
 walk outline teach plan propose suggest brainstorm draft discuss recommend think consider figure break double-check reproduce confirm show print give come help discover monitor watch report determine study display dump sketch guess know head less wc df du ps top`,
		does: `fix fixes fixing implement add change update edit refactor rename remove delete replace rewrite write create make build move extract convert port introduce enable disable raise lower increase decrease set bump patch clean format improve optimize optimise handle support wire hook merge rebase
 commit revert undo redo apply run start stop restart kill generate scaffold finish complete reset deploy drop wipe install upgrade migrate configure push release roll publish truncate purge destroy erase nuke recreate downgrade uninstall pin rollback turn put adjust tweak modify correct resolve extend
 reduce switch allow limit rerun execute launch reload bring spin shut tear promote ship tag rotate renew scale point backfill seed insert restore grant revoke stage stash cherry-pick amend squash split inline sort swap reorder use translate reword document simplify solve repair return support let
 clear empty flush discard throw terminate unpublish obliterate upload send close take ensure regenerate re-create reinitialize redeploy rebuild append prepend wrap unwrap align center hide disable expose redirect cache log validate format lint pull checkout cut copy link unlink register
 separate combine consolidate integrate adapt tidy polish modernize modernise memoize debounce throttle sanitize escape encrypt decrypt hash compress decompress resize crop animate style localize internationalize mock stub bootstrap initialize init setup provision trigger schedule invalidate
 deprecate migrate backport new retry try stop prevent avoid speed unify harden guard type annotate cover store save load accept round mark exclude include ignore skip collapse expand highlight render cast parse sync subscribe publish assign attach detach mount unmount download fetch import export archive
 unzip zip rebuild repoint override bundle minify upsert alter index partition vacuum reindex dedupe deduplicate restructure rework redesign reimplement overhaul apply execute prune shorten lengthen extend enforce require rip pass call tighten loosen relax bind unbind open reopen label assign approve
 respond reply post comment notify email invite share block unblock whitelist blacklist rm mv chmod chown force force-push force-pushing hard-reset unstage yank teardown continue dockerize uncomment re-run blow connect multiply divide subtract compute calculate overwrite swap containerize containerise`,
		runs:     `start stop restart reload kill launch run bring spin shut bounce reboot spawn rerun re-run retry`,
		services: `server servers service services container containers process processes daemon app application stack job jobs worker workers deployment deployments nginx apache postgres postgresql mysql redis mongo mongodb kafka docker compose cluster pod pods instance vm database db backend frontend api machine host queue emulator simulator proxy tunnel celery sidekiq gunicorn systemd unit site website deploy pipeline`,
		checks:   `test tests suite specs lint linter linters typecheck typechecker checker checkers tsc eslint ruff mypy pytest jest vitest rubocop clippy benchmark benchmarks bench coverage build checks e2e spec vet golangci-lint shellcheck`,
		platform: `nginx apache haproxy traefik caddy envoy kubernetes k8s helm terraform ansible docker dockerfile compose docker-compose systemd ingress loadbalancer balancer cdn dns firewall iam vpc cron crontab cronjob ci ci/cd pipeline workflow gunicorn uwsgi pm2 supervisor kubelet s3 ec2 lambda cloudwatch
 cloudfront route53 gke eks aks ecs rds pulumi vagrant vm vms pod pods replica replicas node_exporter prometheus grafana alertmanager playbook vault consul caddyfile proxy bucket queue_depth autoscaling autoscaler istio argocd gitlab-ci jenkins`,
		data:     `migrate migration migrations schema schemas backfill seed seeds replication database databases db postgres postgresql mysql mariadb mongodb mongo redis sqlite kafka column elasticsearch foreign prisma alembic flyway liquibase sql db:migrate db:seed migrate:latest db:setup constraint constraints seeder seeders`,
		depends:  `dependency dependencies devdependency devdependencies package.json go.mod cargo.toml requirements.txt pyproject pyproject.toml lockfile lockfiles virtualenv venv gemfile node_modules package-lock.json peerdependency submodule submodules postinstall`,
		settings: `config configs configure configuration setting settings .env env secret secrets credential credentials certificate certificates cert certs tls ssl timeout timeouts ratelimit rate-limit ratelimiter limiter limits quota quotas cors tsconfig permissions smtp alias .zshrc .bashrc environment yaml yml non-root liveness readiness crontab`,
		places:   `production prod staging preprod`,
		shared:   `pr prs mr mrs pull-request issue issues origin upstream remote release releases channel slack gist npm pypi registry dockerhub marketplace app-store testflight`,
		destroys: `drop truncate wipe nuke destroy purge erase obliterate flush tear terminate discard throw unpublish format shred annihilate raze trash blow`,
		clears:   `delete remove clear empty prune rm`,
		precious: `database databases db dbs table tables schema schemas bucket buckets volume volumes cluster clusters namespace namespaces disk disks partition partitions backup backups data everything infra infrastructure server servers instances index indexes indices queue queues topic topics collection collections
 repo repository production prod staging redis stash snapshot snapshots log logs history keyspace vm vms environment environments stack deployment package collection s3 changes work memcached cache-cluster drive filesystem laptop machine computer harddrive`,
		sweeping: `all every whole entire production prod everything staging old complete full each any`,
		bulk:     `users user customers customer rows row records record data orders order accounts account sessions images uploads backups backup tables table volumes volume files file branches images containers entries keys documents messages events logs directory folder everything databases database namespaces indexes topics tenants invoices resources instances snapshots clusters database db servers collections stacks pods jobs`,
		code: `button buttons link links command commands function functions helper helpers method methods component components class classes shadow shadows animation handler handlers test tests page pages dialog modal form field fields view views icon menu item items hook hooks module parser option flag
 argument arguments parameter parameters screen label tooltip dropdown endpoint endpoints route routes event events callback interface enum struct type types variable variables constant message messages text toggle checkbox input widget row rows cell cells header footer section sidebar layout loop statement macro decorator middleware
 wrapper adapter builder factory iterator generator algorithm logic flow selector reducer action actions story stories spec specs game effect state props snippet example demo query queries navbar toolbar homepage`,
		prose:    `typo typos spelling grammar wording comment comments docstring docstrings jsdoc javadoc godoc readme readme.md changelog changelog.md docs documentation contributing.md contributing punctuation misspelling`,
		programs: `git npm npx pnpm yarn pip pip3 docker kubectl terraform rm rake make cargo go helm psql mysql redis-cli systemctl brew apt apt-get sudo aws gcloud az poetry uv bundle composer php mvn gradle rails python python3 node ./gradlew ansible-playbook docker-compose alembic flyway prisma`,
		risky: `force-push force push --force-reset reset rm git clean migrate migrate:reset migrate:fresh db:drop db:reset terraform kubectl mkfs mkfs.ext4 dd drop truncate delete flushall flushdb down system volume stash filter-branch filter-repo git-filter-repo rewrite history branch hard s3 dropdb uncommitted local
 unstaged helm cdk pulumi vagrant scratch start prune`,
		spelled: `git npm npx pnpm yarn pip pip3 docker docker-compose podman kubectl helm terraform rm psql mysql redis-cli systemctl brew apt apt-get sudo aws gcloud cargo poetry rake bundle ls curl wget sed awk go python python3 node ruby php ./gradlew gradle mvn prisma alembic ansible-playbook mkdir cp mv chmod chown cd docker-machine pytest gh heroku vercel dropdb createdb pg_dump pg_restore crontab ssh scp rsync`,
		manager: `npm pnpm yarn bun pip poetry uv cargo gem bundler composer brew apt conda pipenv maven gradle`,
	} {
		for w := range strings.FieldsSeq(list) {
			m[w] |= s
		}
	}
	return m
}()

// forceful are spellings that stand for themselves in a clause that is to be done.
var forceful = [...]string{
	"force-push", "force push", "push --force", "push -f", "push with force", "force pushes", "reset --hard", "rm -r", "rm -fr", "git clean -", "clean -f", "--force-reset", "migrate reset", "migrate:fresh", "db:drop", "db:reset", "terraform destroy", "kubectl delete", "mkfs", "dd if=",
	"drop table", "drop database", "drop schema", "truncate table", "delete from ", "flushall", "flushdb", "down -v", "down --volumes", "system prune", "volume prune", "volume rm", "stash drop", "stash clear", "filter-branch", "filter-repo", "git history", "rewrite the history", "rewrite history", "branch -d --force",
	"hard reset", "reset hard", "s3 rb", "s3 rm", "dropdb", "uncommitted changes", "local changes", "unstaged changes", "helm uninstall", "cdk destroy", "pulumi destroy", "vagrant destroy", "start from scratch",
}
