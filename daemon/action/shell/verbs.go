package shell

import "strings"

// verbTable rules on a program by its subcommands. A phrase is subcommand words
// in order, from the first; a word ending in * is a prefix; +flag means that
// the flag must stand somewhere. Longest phrase wins.
type verbTable struct {
	valued  string // global options that take a value
	read    []string
	destroy []string
	mutate  []string // exceptions to destroy and to the general verbs
	general bool     // delete, destroy, purge … anywhere in the first words destroys
}

// tableOf finds a program's table.
func tableOf(name string) (verbTable, bool) {
	if t, ok := verbTables[name]; ok {
		return t, true
	}
	if t, ok := serviceTables[name]; ok {
		return t, true
	}
	if t, ok := hostTables[name]; ok {
		return t, true
	}
	for _, ext := range [...]string{".sh", ".bat", ".cmd"} { // tools that come as scripts
		if short, ok := strings.CutSuffix(name, ext); ok {
			return tableOf(short)
		}
	}
	return verbTable{}, false
}

func phrases(s string) []string {
	var out []string
	for p := range strings.SplitSeq(s, ",") {
		if p = strings.TrimSpace(p); p != "" {
			out = append(out, p)
		}
	}
	return out
}

const (
	packageReads = "list, ls, search, show, info, view, outdated, why, explain, config list, config get, root, prefix, bin, help, version, audit, fund, doctor, licenses, ping, whoami"
	cloudValued  = "--profile --region --output --query --endpoint-url -o --project --format --account --zone --subscription -g --resource-group --name -n --filter --limit"
)

var verbTables = map[string]verbTable{
	"npm":                 {valued: "--prefix -w --workspace --registry", read: phrases(packageReads + ", ll, la"), destroy: phrases("publish, unpublish, deprecate, access revoke, owner rm, team destroy, team rm, org rm, hook rm, hook delete, token revoke, token delete, dist-tag rm, profile disable-2fa"), mutate: phrases("uninstall, rm, remove, un, prune, cache clean")},
	"pnpm":                {valued: "-C --dir --filter -F", read: phrases(packageReads), destroy: phrases("publish"), mutate: phrases("remove, rm, prune, store prune")},
	"yarn":                {valued: "--cwd", read: phrases(packageReads + ", workspaces info, workspaces list"), mutate: phrases("remove, cache clean")},
	"pip":                 {read: phrases("list, show, freeze, check, search, index, debug, config list, config get, inspect, cache list, cache info"), mutate: phrases("uninstall, cache purge")},
	"pip3":                {read: phrases("list, show, freeze, check, index, inspect")},
	"uv":                  {read: phrases("pip list, pip show, pip freeze, pip check, pip tree, tree, version, python list"), mutate: phrases("remove, pip uninstall, cache clean, cache prune")},
	"poetry":              {read: phrases("show, check, env info, env list, version"), destroy: phrases("publish"), mutate: phrases("remove, env remove, publish +--dry-run")},
	"cargo":               {valued: "--manifest-path -Z --color --config", read: phrases("tree, metadata, search, version, locate-project, pkgid, info, read-manifest, verify-project"), destroy: phrases("publish, yank, owner --remove"), mutate: phrases("clean, remove, rm, uninstall")},
	"go":                  {valued: "-C", read: phrases("version, env, list, doc, help, mod graph, mod why, mod verify, tool nm, tool objdump"), mutate: phrases("clean, env +-w, env +-u, list +-toolexec, list +-export, list +-cgo, list +-compiled, list +-mod=mod")},
	"rustup":              {read: phrases("show, toolchain list, target list, component list, which, check"), mutate: phrases("toolchain uninstall, self uninstall, target remove, component remove")},
	"gem":                 {read: phrases("list, search, info, environment, env, contents, outdated, dependency, which"), destroy: phrases("yank"), mutate: phrases("uninstall, cleanup")},
	"bundle":              {read: phrases("list, show, info, outdated, check, config list, platform")},
	"composer":            {read: phrases("show, info, outdated, validate, licenses, why, depends, diagnose, search, status"), mutate: phrases("remove, clear-cache")},
	"mvn":                 {read: phrases("--version, dependency:tree, help:effective-pom"), destroy: phrases("deploy, release:perform, release:rollback, * deploy, * release:perform")},
	"dotnet":              {read: phrases("--info, --list-sdks, --list-runtimes, list"), destroy: phrases("ef database drop, nuget delete"), mutate: phrases("remove, clean")},
	"brew":                {destroy: phrases("uninstall +--zap, remove +--zap, rm +--zap"), read: phrases("list, ls, info, search, outdated, deps, uses, config, doctor, home, leaves, desc, cat, services list"), mutate: phrases("uninstall, remove, rm, cleanup, autoremove")},
	"apt":                 {valued: "-o -c -t", read: phrases("list, search, show, policy, depends, rdepends, changelog"), destroy: phrases("purge, remove, autoremove, autopurge")},
	"apt-get":             {valued: "-o -c -t", read: phrases("changelog, check"), destroy: phrases("purge, remove, autoremove, dist-upgrade"), mutate: phrases("install, update, upgrade, clean, autoclean")},
	"apt-cache":           {read: phrases("*")},
	"dpkg":                {read: phrases("-l, --list, -L, --listfiles, -s, --status, -S, --search, --print-architecture, -c, -I, --get-selections"), destroy: phrases("-r, --remove, -P, --purge")},
	"dpkg-query":          {read: phrases("*")},
	"dnf":                 {general: true, read: phrases("list, search, info, repolist, provides, repoquery, history list, check-update"), destroy: phrases("remove, erase, autoremove, history undo")},
	"yum":                 {general: true, read: phrases("list, search, info, repolist, provides, check-update"), destroy: phrases("remove, erase, autoremove")},
	"rpm":                 {read: phrases("-q, -qa, -qi, -ql, -qf, --query, -V"), destroy: phrases("-e, --erase")},
	"apk":                 {general: true, read: phrases("info, list, search, policy, version, stats"), destroy: phrases("del")},
	"nix":                 {read: phrases("search, show-config, flake show, flake metadata, path-info, why-depends, store ls"), destroy: phrases("store gc, store delete")},
	"nix-collect-garbage": {destroy: phrases("*")},

	"docker":         {valued: "-H --host -c --context --config -l --log-level", read: phrases(dockerReads), destroy: phrases(dockerDestroys), mutate: phrases("rmi, image rm, network rm, plugin rm, manifest rm, compose rm, network disconnect, image remove, compose stop, compose config +-o, compose config +--output, compose config +--lock-image-digests")},
	"podman":         {valued: "--url -c --connection --log-level", read: phrases(dockerReads), destroy: phrases(dockerDestroys + ", system reset, machine rm, pod rm +-f"), mutate: phrases("rmi, image rm, network rm")},
	"nerdctl":        {valued: "-n --namespace -H", read: phrases(dockerReads), destroy: phrases(dockerDestroys), mutate: phrases("rmi, image rm, rm, network rm, compose config +-o, compose config +--output")},
	"docker-compose": {valued: "-f --file -p --project-name --env-file --profile", read: phrases("ps, logs, config, images, top, port, version, ls, events"), destroy: phrases("down +-v, down +--volumes, down +--rmi, rm +-v, rm +-f, kill"), mutate: phrases("down, rm, stop, config +-o, config +--output")},
	"kubectl":        {valued: kubeValued, read: phrases(kubeReads), destroy: phrases(kubeDestroys), mutate: phrases("config delete-*, label, annotate")},
	"oc":             {valued: kubeValued, read: phrases(kubeReads + ", whoami, status, projects"), destroy: phrases(kubeDestroys)},
	"helm":           {valued: "-n --namespace --kube-context --kubeconfig", read: phrases("list, ls, status, get, history, show, search, template, lint, version, env, repo list, dependency list, verify, diff"), destroy: phrases("uninstall, delete, del, un, rollback"), mutate: phrases("repo remove, plugin uninstall")},
	"kustomize":      {read: phrases("build, version, cfg tree")},
	"kind":           {read: phrases("get, version"), destroy: phrases("delete")},
	"minikube":       {valued: "-p --profile", read: phrases("status, ip, version, profile list, logs, service list, addons list"), destroy: phrases("delete")},
	"argocd":         {read: phrases("app list, app get, app diff, app history, app logs, version, cluster list, repo list, proj list"), general: true},
	"flux":           {read: phrases("get, check, logs, tree, stats, diff, version"), destroy: phrases("uninstall"), general: true},

	"terraform":        {valued: "", read: phrases(tfReads), destroy: phrases(tfDestroys), mutate: phrases("destroy +-help")},
	"tofu":             {read: phrases(tfReads), destroy: phrases(tfDestroys)},
	"terragrunt":       {read: phrases(tfReads), destroy: phrases(tfDestroys + ", run-all destroy, run-all apply, destroy-all, apply-all")},
	"pulumi":           {valued: "-s --stack -C --cwd", read: phrases("stack ls, stack output, whoami, config get, version, stack history, stack graph"), destroy: phrases("destroy, stack rm, up +--yes, up +-y, state delete, refresh +--yes, cancel, down")},
	"cdk":              {read: phrases("list, ls, synth, synthesize, diff, doctor, metadata, docs"), destroy: phrases("destroy")},
	"serverless":       {read: phrases("info, print, logs, deploy list"), destroy: phrases("remove, rollback")},
	"sls":              {read: phrases("info, print, logs, deploy list"), destroy: phrases("remove, rollback")},
	"sam":              {read: phrases("validate, logs, list"), destroy: phrases("delete")},
	"ansible":          {},
	"ansible-playbook": {read: phrases("+--list-tasks, +--list-hosts, +--syntax-check")},
	"vagrant":          {read: phrases("status, global-status, ssh-config, port, box list, plugin list, version, validate"), destroy: phrases("destroy, box remove, snapshot delete, snapshot restore")},
	"packer":           {read: phrases("version, fmt +-check")},

	"aws":      {valued: cloudValued, read: phrases(awsReads), destroy: phrases(awsDestroys), mutate: phrases("configure"), general: true},
	"gcloud":   {valued: cloudValued, read: phrases("version, info, help, config list, config get-value, config configurations list, auth list, projects list, projects describe"), destroy: phrases("projects delete"), general: true},
	"az":       {valued: cloudValued, read: phrases("version, account list, account show"), general: true},
	"doctl":    {valued: "-t --context", general: true},
	"heroku":   {valued: "-a --app -r --remote", read: phrases("apps, ps, logs, config, config:get, releases, addons, domains, pg:info, pg:ps, status, auth:whoami"), destroy: phrases("apps:destroy, pg:reset, addons:destroy, pg:killall, releases:rollback, rollback, domains:clear, keys:clear, config:unset, pg:push, pg:pull, pg:copy, ps:kill"), general: true},
	"fly":      {valued: "-a --app -c --config", read: phrases("status, logs, apps list, info, releases, ips list, secrets list, volumes list, version, doctor, platform"), general: true},
	"flyctl":   {valued: "-a --app -c --config", read: phrases("status, logs, apps list, info, releases, version"), general: true},
	"supabase": {read: phrases("status, projects list, migration list, functions list, secrets list"), destroy: phrases("db reset, db push, migration repair, migration squash"), general: true},
	"firebase": {valued: "-P --project", read: phrases("projects:list, apps:list, functions:list, functions:log, login:list, hosting:sites:list"), destroy: phrases("firestore:delete, database:remove, functions:delete, hosting:disable, database:set"), general: true},
	"gh": {valued: "-R --repo", read: phrases("repo view, repo list, pr list, pr view, pr diff, pr checks, pr status, issue list, issue view, issue status, run list, run view, run watch, release list, release view, auth status, search, status, workflow list, workflow view, gist list, gist view, label list, secret list, variable list, variable get, cache list"),
		destroy: phrases("repo delete, repo archive, release delete, release delete-asset, issue delete, secret delete, variable delete, workflow disable, run delete, cache delete, gist delete, label delete, ssh-key delete, gpg-key delete, codespace delete, project delete, extension remove, api +DELETE, api +-XDELETE")},

	"systemctl":     {valued: "-H -M -n -o -p --property -t --type", read: phrases("status, show, cat, list-*, is-*, get-default, show-environment, help, kill +-s +help, kill +--signal=help, kill +--signal=list"), destroy: phrases("poweroff, reboot, halt, kexec, emergency, rescue, isolate, stop, disable, mask, kill, revert, clean"), mutate: phrases("reset-failed")},
	"service":       {read: phrases("--status-all, * status"), destroy: phrases("* stop")},
	"supervisorctl": {read: phrases("status, tail, avail, pid"), destroy: phrases("stop, remove, shutdown")},
	"pm2":           {read: phrases("list, ls, status, logs, show, describe, info, env, monit, jlist, prettylist"), destroy: phrases("delete, del, kill, flush, stop")},
	"hostnamectl":   {read: phrases("status")},
	"timedatectl":   {read: phrases("status, show, list-timezones, timesync-status")},
	"localectl":     {read: phrases("status, list-*")},
	"resolvectl":    {read: phrases("status, query, statistics, dns, domain")},
	"networkctl":    {read: phrases("status, list, lldp")},
	"nginx":         {read: phrases("-t, -T, -v, -V, -h"), mutate: phrases("+-c, +-p, +-g"), destroy: phrases("-s +stop, -s +quit")},
	"apachectl":     {read: phrases("-t, configtest, -S, -M, -v, -V, status"), mutate: phrases("+-f, +-d, +-c, +-C"), destroy: phrases("stop, graceful-stop, -k +stop, -k +graceful-stop")},
	"httpd":         {read: phrases("-t, -S, -M, -v, -V"), mutate: phrases("+-f, +-d, +-c, +-C")},
	"haproxy":       {read: phrases("-c, -v, -vv"), destroy: phrases("+-st, +-sf")},
	"postconf":      {read: phrases("-n, -d"), mutate: phrases("-e")},
	"sshd":          {read: phrases("-t, -T")},
	"postfix":       {read: phrases("status, check")},
	"ssh-add":       {read: phrases("-l, -L"), destroy: phrases("-D, -d")},
	"gpg":           {read: phrases("--list-*, -k, -K, --version, --verify, --fingerprint"), destroy: phrases("--delete-*")},
	"openssl":       {read: phrases("version, s_client, ciphers, verify, list, dgst")},
	"pass":          {read: phrases("ls, list, show, find, grep"), destroy: phrases("rm, remove, delete")},
	"vault":         {read: phrases("status, read, list, kv get, kv list, token lookup, policy list, policy read, secrets list, auth list, version, audit list, kv metadata get"), destroy: phrases("secrets disable, auth disable, lease revoke, token revoke, operator seal, audit disable, delete, kv destroy, kv delete, kv metadata delete, kv put, operator rekey, operator rotate"), general: true},
	"consul":        {read: phrases("members, info, kv get, catalog *, version, operator raft list-peers"), destroy: phrases("force-leave, leave, snapshot restore, kv delete, operator raft remove-peer"), general: true},
	"etcdctl":       {valued: "--endpoints --cacert --cert --key", read: phrases("get, member list, endpoint *, version, alarm list"), destroy: phrases("del, member remove, snapshot restore, compaction, defrag"), general: true},
	"rabbitmqctl":   {read: phrases("status, list_*, cluster_status, environment, report, ping, node_health_check"), destroy: phrases("reset, force_reset, delete_*, purge_queue, clear_*, stop, stop_app, forget_cluster_node, shutdown"), general: true},
	"kafka-topics":  {read: phrases("+--list, +--describe"), destroy: phrases("+--delete")},

	"kafka-configs":         {read: phrases("+--describe"), destroy: phrases("+--delete-config")},
	"kafka-consumer-groups": {read: phrases("+--list, +--describe"), destroy: phrases("+--delete, +--reset-offsets, +--delete-offsets")},
	"kafka-acls":            {read: phrases("+--list"), destroy: phrases("+--remove")},
	"gradlew":               {destroy: phrases("publish, publishPlugins, * publish")},
	"gradle":                {destroy: phrases("publish, publishPlugins, * publish")},
	"mvnw":                  {read: phrases("--version, dependency:tree"), destroy: phrases("deploy, release:perform, release:rollback, * deploy, * release:perform")},
	"twine":                 {read: phrases("check"), destroy: phrases("upload")},
	"ssh-keygen":            {valued: "-f -t -b -C -N -P", read: phrases("+-l, +-B, +-F"), destroy: phrases("+-R")},
	"manage.py":             {read: phrases("check, showmigrations, sqlmigrate, sqlflush, diffsettings, inspectdb, dumpdata, makemigrations +--check, makemigrations +--dry-run, help, version"), destroy: phrases("flush, reset_db, sqlclear, migrate * zero, migrate zero, remove_stale_contenttypes, clearsessions, delete_*, drop_*, purge_*")},
	"django-admin":          {read: phrases("check, showmigrations, sqlmigrate, sqlflush, diffsettings, inspectdb, dumpdata, help, version"), destroy: phrases("flush, reset_db, migrate * zero, remove_stale_contenttypes, delete_*, drop_*, purge_*")},
	"dropdb":                {destroy: phrases("*")},
	"dropuser":              {destroy: phrases("*")},
	"pg_dump":               {mutate: phrases("+-f, +--file"), read: phrases("*")},
	"pg_dumpall":            {mutate: phrases("+-f, +--file"), read: phrases("*")},
	"pg_isready":            {read: phrases("*")},
	"pg_restore":            {destroy: phrases("+--clean, +-c"), read: phrases("+-l, +--list")},
	"pg_ctl":                {read: phrases("status"), destroy: phrases("stop")},
	"pg_resetwal":           {read: phrases("+-n, +--dry-run"), destroy: phrases("*")},
	"mysqladmin":            {valued: "-u -h -P -S", read: phrases("status, ping, version, variables, processlist, extended-status"), destroy: phrases("drop, shutdown, flush-*")},
	"mysqldump":             {read: phrases("*")},
	"mongorestore":          {destroy: phrases("+--drop")},
	"prisma":                {read: phrases("version, validate, format +--check, migrate status, db pull +--print, migrate diff"), destroy: phrases("migrate reset, db push +--force-reset, db push +--accept-data-loss, db execute")},
	"drizzle-kit":           {read: phrases("check"), destroy: phrases("drop, push +--force")},
	"knex":                  {read: phrases("migrate:list, migrate:status, migrate:currentVersion"), destroy: phrases("migrate:rollback, migrate:down, migrate:unlock")},
	"sequelize":             {read: phrases("db:migrate:status"), destroy: phrases("db:drop, db:migrate:undo*")},
	"typeorm":               {read: phrases("migration:show"), destroy: phrases("schema:drop, migration:revert, schema:sync")},
	"rails":                 {read: phrases("routes, about, stats, notes, db:version, db:migrate:status, middleware"), destroy: phrases("db:drop, db:reset, db:migrate:reset, db:rollback, db:schema:load, db:truncate_all, db:setup, db:purge, db:seed:replant, destroy, db:drop:*")},
	"rake":                  {destroy: phrases("db:drop, db:reset, db:migrate:reset, db:rollback, db:schema:load, db:truncate_all, db:purge, db:drop:*")},
	"artisan":               {read: phrases("list, route:list, about, migrate:status"), destroy: phrases("migrate:fresh, migrate:reset, migrate:refresh, migrate:rollback, db:wipe")},
	"alembic":               {read: phrases("current, history, heads, branches, show, check"), destroy: phrases("downgrade")},
	"flyway":                {read: phrases("info, validate"), destroy: phrases("clean, undo, repair")},
	"liquibase":             {read: phrases("status, validate, history, diff"), destroy: phrases("drop-all, dropAll, rollback*")},
	"diesel":                {read: phrases("migration list, migration pending, print-schema"), destroy: phrases("database reset, database drop, migration revert, migration redo")},
	"sqlx":                  {read: phrases("migrate info"), destroy: phrases("database drop, database reset, migrate revert")},
	"goose":                 {valued: "-dir -table -certfile", read: phrases("status, version, * * status, * * version"), destroy: phrases("down, down-to, reset, * * down, * * down-to, * * reset")},
	"dbmate":                {read: phrases("status"), destroy: phrases("drop, rollback, down")},
	"migrate":               {valued: "-path -database -source", read: phrases("version"), destroy: phrases("drop, down, force")},
	"make":                  {destroy: phrases("destroy, nuke, drop-db, reset-db, db-reset, purge")},
	"just":                  {read: phrases("--list, -l, --summary, --show, --dump")},
	"hyperfine":             {},
	"pytest":                {read: phrases("+--collect-only, +--co")},
	"jest":                  {read: phrases("+--listTests, +--showConfig")},
	"vitest":                {},
	"eslint":                {mutate: phrases("+--fix, +-o, +--output-file"), read: phrases("*")},
	"ruff":                  {mutate: phrases("+--fix, format, clean"), read: phrases("check, rule, linter, version, config")},
	"mypy":                  {},
	"flake8":                {read: phrases("*")},
	"pylint":                {},
	"black":                 {read: phrases("+--check, +--diff")},
	"isort":                 {read: phrases("+--check, +--diff, +-c")},
	"gofmt":                 {mutate: phrases("+-w"), read: phrases("*")},
	"goimports":             {mutate: phrases("+-w"), read: phrases("*")},
	"golangci-lint":         {mutate: phrases("+--fix"), read: phrases("run, linters, version, config path")},
	"staticcheck":           {read: phrases("*")},
	"prettier":              {mutate: phrases("+-w, +--write"), read: phrases("*")},
	"restic":                {valued: "-r --repo -p --password-file", read: phrases("snapshots, ls, stats, diff, find, check, cat, list, version, dump"), destroy: phrases("forget, prune, unlock, key remove, rewrite, repair, cache +--cleanup"), general: true},
	"borg":                  {read: phrases("list, info, diff, check, version"), destroy: phrases("delete, prune, recreate, compact, break-lock"), general: true},
	"velero":                {read: phrases("get, describe, logs, version, *-location get, backup get, backup describe, backup logs, restore get, restore describe, schedule get"), general: true},
	"virsh":                 {read: phrases("list, dominfo, domstate, dumpxml, version, nodeinfo, *-list, *-info, *-dumpxml"), destroy: phrases("destroy, undefine, *-delete, *-destroy, *-undefine, reset"), general: true},
	"lxc":                   {read: phrases("list, info, image list, network list, config show"), destroy: phrases("delete, stop +--force"), general: true},
	"multipass":             {read: phrases("list, info, find, version"), destroy: phrases("delete, purge")},
	"ollama":                {read: phrases("list, ps, show, ls"), destroy: phrases("rm"), mutate: phrases("stop")},
	"code":                  {read: phrases("--list-extensions, --status, --version")},
	"gettier":               {read: phrases("status, holds, facts, turns, why, week, events, sensors list, sensors lint, sensors diff, audit verify, config show, project list, scenarios list, scenarios validate, version, report, doctor, decide, classify, policy, redact, env")},
}

const (
	dockerReads = `ps, images, logs, inspect, version, info, stats, top, port, diff, history, search, events, image ls, image list, image inspect, image history, container ls, container list, container ps, container inspect, container logs, container top, container stats, container port, container diff,
 volume ls, volume list, volume inspect, network ls, network list, network inspect, compose ps, compose logs, compose config, compose images, compose top, compose port, compose version, compose ls, compose events, system df, system info, system events, context ls, context show, context inspect, buildx ls, buildx inspect, buildx du, manifest inspect, node ls, node ps, service ls, service ps, service logs, service inspect, stack ls, stack ps, stack services, secret ls, config ls, plugin ls, builder ls`
	dockerDestroys = `system prune, volume rm, volume remove, volume prune, container prune, image prune, network prune, builder prune, buildx prune, buildx rm, compose down +-v, compose down +--volumes, compose down +--rmi, compose rm +-v, compose rm +-f, compose kill, rm +-f, rm +-v, rm +--force, container rm +-f, container rm +--force, rmi +-f, rmi +--force, image rm +-f,
 rm, container rm, kill, container kill, stop, container stop, swarm leave, stack rm, service rm, secret rm, config rm, node rm, context rm`
	kubeValued = "-n --namespace --context --kubeconfig --cluster --user -s --server --as -l --selector -o --output -f --filename -c --container --field-selector --type --tail --since"
	kubeReads  = `get, describe, logs, version, explain, top, cluster-info, api-resources, api-versions, diff, auth can-i, auth whoami, config view, config get-contexts, config current-context, config get-clusters, config get-users, rollout status, rollout history, events, wait, kustomize, options, plugin list`
	// kubectl replace --force deletes and makes anew.
	kubeDestroys = `delete, drain, replace +--force, rollout undo, taint, evict, scale +--replicas=0, adm drain, adm prune, apply +--prune, apply +--force, delete-collection`
	tfReads      = `version, output, providers, state list, state pull, workspace list, workspace show, fmt +-check, -version`
	tfDestroys   = `destroy, apply, state rm, state push, workspace delete, taint, force-unlock, state mv, state replace-provider`
	awsReads     = `s3 ls, sts get-*, s3 presign, help, configure list, configure get, * describe-*, * list-*, * get-*, * batch-get-*, * head-*, logs tail, logs filter-log-events, * lookup-*, * search-*, * scan, * query, ecr get-*, * wait`
	awsDestroys  = `s3 rm, s3 rb, s3 sync +--delete, * delete-*, * terminate-*, * batch-delete-*, * deregister-*, * purge-*, * remove-*, * disable-*, * revoke-*, * destroy-*, * reset-*, * stop-*, * release-*, * put-bucket-lifecycle*, * schedule-key-deletion, * modify-db-* +--apply-immediately, * put-secret-value, * reboot-*, * cancel-*, * detach-*, * disassociate-*, * update-secret, * update-secret-*, * create-invalidation, * change-resource-record-sets, * put-key-policy, * close-account`
)

// verbs rules by tables of subcommands, and by a statement among the arguments.
func verbs(w *walker, c call) ruling {
	r := stronger(byTable(w, c), statementArg(c.args))
	name := base(c.args[0].s)
	if code := frameworkCode(name, c.args); code != "" {
		if e := codeRuling(code); e.effect.AtLeast(Destroy) {
			r = stronger(r, e)
		}
	}
	if name == "go" && len(c.args) > 2 && c.args[1].s == "run" {
		for i, a := range c.args[2:] {
			if a.s != "" && a.s[0] != '-' {
				r = stronger(r, script(w, call{args: c.args, env: c.env, in: c.in}, c.args[i+2:]))
				break
			}
		}
	}
	return r
}

// frameworkCode is the code that a framework's own command runs inside of the
// application, "" for none.
func frameworkCode(name string, args []word) string {
	sub, flags := "", ""
	switch name {
	case "rails":
		sub = "runner r"
	case "manage.py", "django-admin":
		sub, flags = "shell shell_plus", "-c --command"
	case "artisan":
		sub, flags = "tinker", "--execute"
	case "mix":
		sub, flags = "run eval", "-e --eval"
	default:
		return ""
	}
	for i, a := range args {
		if i == 0 || !takesValue(sub, a.s) {
			continue
		}
		for j := i + 1; j < len(args); j++ {
			if flags == "" && args[j].s != "" && args[j].s[0] != '-' {
				return args[j].s
			}
			if v, ok := flagValue(flags, args[j:min(j+2, len(args))]); ok && flags != "" {
				return v.s
			}
		}
		if name == "mix" && i+1 < len(args) {
			return args[i+1].s
		}
	}
	return ""
}

func byTable(_ *walker, c call) ruling {
	name := base(c.args[0].s)
	t, _ := tableOf(name)
	pos := subcommands(c.args, t.valued)
	best, effect, words, won := -1, Effect(""), 0, ""
	try := func(list []string, e Effect) {
		for _, p := range list {
			if n := matchPhrase(p, pos, c.args, e == Destroy, false); n > best || n == best && n >= 0 && e.Rank() > effect.Rank() {
				best, effect, words, won = n, e, strings.Count(p, " ")+1, p
				if p == "*" {
					words = len(pos)
				}
			}
		}
	}
	try(t.read, ReadOnly)
	try(t.mutate, Mutate)
	try(t.destroy, Destroy)
	if best < 0 && shortens[name] {
		for _, p := range t.destroy {
			if n := matchPhrase(p, pos, c.args, true, true); n > best {
				best, effect, words = n, Destroy, len(pos)
			}
		}
	}
	what := name
	for i := range min(3, len(pos)) {
		what += " " + pos[i].s
	}
	_, classic := verbTables[name]
	t.general = t.general || !classic
	if len(c.args) == 2 && (c.args[1].s == "-V" && (effect == "" || !classic) || c.args[1].s == "version" && !classic && effect == "") || asksHelp(c.args) {
		return readOnly("prints version or help")
	}
	if effect == ReadOnly && t.general { // projects lists, projects delete does not
		for i := words; i < min(len(pos), 5); i++ {
			if destructiveWord(strings.ToLower(pos[i].s)) && !followsOption(c.args, pos[i].s) {
				effect = Destroy
			}
		}
	}
	dry := hasFlag(c.args, "--dry-run", "--dry-run=client", "--dry-run=server", "--dryrun", "--check-only", "--what-if") || (name == "apt-get" || name == "apt" || name == "aptitude") && hasFlag(c.args, "-s", "--simulate", "--just-print", "--no-act", "--recon")
	switch {
	case effect == Destroy && dry:
		return readOnly("a dry run of " + what)
	case effect == Destroy:
		for f := range strings.FieldsSeq(won) { // the options that make it so
			if f = strings.TrimPrefix(f, "+"); len(f) > 1 && f[0] == '-' && f != "--" {
				what += " " + f
			}
		}
		return destroy("verb."+name, what+" may take away what is in use")
	case effect == ReadOnly:
		return readOnly(what + " looks")
	case effect == Mutate:
		return mutate("verb."+name, what)
	}
	if len(pos) > 0 && pos[0].dyn {
		return ruling{effect: Opaque, rule: "dynamic.command", why: "a " + name + " command that is known only when it runs"}
	}
	if t.general {
		for i, p := range pos {
			if i > 4 {
				break
			}
			if strings.IndexByte(p.s, '/') < 0 && destructiveVerb(p.s) && !dry {
				return destroy("verb.destroy", what+" takes away")
			}
		}
		for _, a := range c.args[1:] {
			if destructiveFlag(a.s) && !dry {
				return ruling{effect: Destroy, rule: "flag.destroy", why: what + " " + a.s}
			}
		}
		for i, p := range pos {
			if i > 4 || i == 0 {
				continue
			}
			switch v := p.s; {
			case v == "list", v == "ls", v == "describe", v == "show", v == "get", v == "info", v == "status", v == "version", v == "read", v == "logs", v == "tail", strings.HasPrefix(v, "list-"), strings.HasPrefix(v, "show-"), strings.HasPrefix(v, "get-iam"):
				return readOnly(what + " looks")
			}
		}
	}
	return mutate("verb."+name, what)
}

// followsOption reports a word that stands right behind a long option each time: its
// value, as far as one can tell.
func followsOption(args []word, s string) bool {
	for i, a := range args {
		if a.s == s && (i == 0 || !strings.HasPrefix(args[i-1].s, "--") || strings.IndexByte(args[i-1].s, '=') > 0) {
			return false
		}
	}
	return true
}

// subcommands are the plain words; options count as words when they come first,
// since for nginx or dpkg they are the verb.
func subcommands(args []word, valued string) []word {
	pos := positional(args, valued)
	if len(args) > 1 && strings.HasPrefix(args[1].s, "-") && !takesValue(valued, args[1].s) && len(pos) == 0 || len(args) > 1 && isVerbOption(args[0].s, args[1].s) {
		return append([]word{args[1]}, pos...)
	}
	return pos
}

func isVerbOption(prog, opt string) bool {
	switch base(prog) {
	case "yay", "paru", "trizen", "aura", "emerge", "slapt-get", "nix-env", "nix-store", "fastboot", "pfctl", "ipvsadm", "conntrack", "ebtables", "arptables", "ipset", "tarsnap", "salt-key", "postqueue", "bleachbit", "timeshift", "acme.sh", "update-alternatives", "systemd-tmpfiles", "spctl", "mokutil", "nvram", "lpadmin", "route", "arp", "ninja", "megacli", "multipath", "visudo", "postsuper", "flashrom", "ip6tables":
		return strings.HasPrefix(opt, "-")
	case "dpkg", "rpm", "pacman", "nginx", "apachectl", "httpd", "gpg", "ssh-add", "sshd", "haproxy", "postconf", "make", "just", "rake", "code", "service":
		return strings.HasPrefix(opt, "-")
	}
	return false
}

// shortens are programs that take any beginning of a subcommand for the whole.
var shortens = set("qm pct pvesm pveum pvecm pvesh bridge tc devlink nmcli btrfs hg jj ip")

// matchPhrase returns how specific the match is, -1 for none. In a phrase that
// destroys an option may stand where it will; begun takes beginnings of words.
func matchPhrase(p string, pos, args []word, loose, begun bool) int {
	n, i := 0, 0
	for f := range strings.FieldsSeq(p) {
		if flag, ok := strings.CutPrefix(f, "+"); ok {
			if !flagPresent(flag, args) {
				return -1
			}
			n += 2
			continue
		}
		if f == "*" && i == 0 && p == "*" {
			return 0
		}
		switch {
		case i < len(pos) && (matchWord(f, pos[i].s) || begun && pos[i].s != "" && strings.HasPrefix(f, pos[i].s)):
			i++
		case loose && len(f) > 1 && f[0] == '-' && f != "--" && flagPresent(f, args):
		default:
			return -1
		}
		if f != "*" {
			n += 2
		}
		if strings.HasSuffix(f, "*") {
			n--
		}
	}
	return n
}

func flagPresent(flag string, args []word) bool {
	for _, a := range args[1:] {
		if a.s == flag || strings.HasPrefix(a.s, flag) && strings.HasPrefix(flag, "--") && len(a.s) > len(flag) && a.s[len(flag)] == '=' {
			return true
		}
		if len(flag) == 2 && flag[0] == '-' && len(a.s) > 2 && a.s[0] == '-' && a.s[1] != '-' && strings.IndexByte(a.s, flag[1]) > 0 {
			return true
		}
	}
	return false
}

func matchWord(f, s string) bool {
	if f == "*" {
		return true
	}
	if pre, ok := strings.CutSuffix(f, "*"); ok {
		return strings.HasPrefix(s, pre)
	}
	if suf, ok := strings.CutPrefix(f, "*"); ok {
		return strings.HasSuffix(s, suf)
	}
	return f == s
}
