package probe

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
)

// infraContext: which cluster, account, workspace, daemon would this command
// change? (row 15) Only files and variables are read; nothing is asked.
func (p *probe) infraContext() error {
	if _, _, known := p.env("HOME"); !known {
		return errors.New("the agent's environment is not known")
	}
	for _, f := range []func() error{p.kube, p.terraform, p.aws, p.gcloud, p.docker} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// kube reads kubeconfig: the first file of KUBECONFIG that names a current
// context wins, entries of a name are taken from the first file that has it.
func (p *probe) kube() error {
	var files []string
	if v, set, _ := p.env("KUBECONFIG"); set && v != "" {
		for _, f := range filepath.SplitList(v) {
			if !filepath.IsAbs(f) {
				f = filepath.Join(p.Cwd, f)
			}
			files = append(files, f)
		}
		if len(files) > 16 {
			return nil
		}
	} else if p.Home != "" {
		files = []string{filepath.Join(p.Home, ".kube", "config")}
	}
	var docs []yamlNode
	for _, f := range files {
		text, err := p.outside(f)
		if absent(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read kubeconfig: %w", err)
		}
		d, err := parseYAML(text)
		if err != nil {
			return fmt.Errorf("read kubeconfig: %w", err)
		}
		docs = append(docs, d)
	}
	current := ""
	for _, d := range docs {
		if current = d.at("current-context").text(); current != "" {
			break
		}
	}
	if len(docs) > 0 && current == "" {
		p.put("kube_current", "none")
	}
	p.put("kube_current", current)
	named := p.param("context")
	context := or(named, current)
	if context == "" {
		return nil
	}
	p.put("kube_context", context)
	entry := kubeEntry(docs, "contexts", context)
	if named != "" {
		p.putBool("kube_context_exists", entry.n != nil)
		p.putBool("kube_is_current", named == current)
	}
	c := entry.at("context")
	if c.n == nil {
		return nil
	}
	p.put("kube_namespace", or(c.at("namespace").text(), "default"))
	cluster := c.at("cluster").text()
	p.put("kube_cluster", cluster)
	p.put("kube_user", c.at("user").text())
	if server := kubeEntry(docs, "clusters", cluster).at("cluster").at("server").text(); server != "" {
		p.put("kube_host_class", p.hostOf(server))
	}
	return nil
}

func kubeEntry(docs []yamlNode, list, name string) yamlNode {
	for _, d := range docs {
		for _, e := range d.at(list).items() {
			if e.at("name").text() == name {
				return e
			}
		}
	}
	return yamlNode{}
}

// hostOf is the class of a URL's host: local, private or remote.
func (p *probe) hostOf(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return ""
	}
	if u.Scheme == "unix" || u.Scheme == "npipe" || u.Scheme == "fd" {
		return "local"
	}
	host := strings.ToLower(u.Hostname())
	if a, err := netip.ParseAddr(host); err == nil {
		switch a = a.Unmap(); {
		case a.IsLoopback(), a.IsUnspecified():
			return "local"
		case a.IsPrivate():
			return "private"
		}
		return "remote"
	}
	switch {
	case host == "":
		return ""
	case host == "localhost", strings.HasSuffix(host, ".localhost"), host == "kubernetes.docker.internal", host == "host.docker.internal":
		return "local"
	}
	return "remote"
}

// terraform: the workspace chosen in this directory, or by TF_WORKSPACE.
func (p *probe) terraform() error {
	t, err := p.files()
	if err != nil {
		return nil //nolint:nilerr // no directory of a project: nothing is told of it
	}
	entries, err := t.names(t.cwd)
	if err != nil {
		return err
	}
	is := false
	for _, e := range entries {
		is = is || strings.HasSuffix(e.Name(), ".tf") || strings.HasSuffix(e.Name(), ".tofu") || e.Name() == ".terraform"
	}
	if !is {
		return nil
	}
	name := "default"
	dir, set, _ := p.env("TF_DATA_DIR")
	switch v, workspace, _ := p.env("TF_WORKSPACE"); {
	case workspace && v != "":
		name = v
	case set && dir != "":
		return nil
	default:
		text, err := t.file(t.cwd + "/.terraform/environment")
		if err != nil && !absent(err) {
			return err
		}
		name = or(strings.TrimSpace(text), name)
	}
	p.put("terraform_workspace", name)
	return nil
}

// aws: the profile and region by name; whose account it is only a call could tell.
func (p *probe) aws() error {
	profile, from := "", ""
	for _, n := range []string{"AWS_PROFILE", "AWS_DEFAULT_PROFILE"} {
		if v, set, _ := p.env(n); set && v != "" && profile == "" {
			profile, from = v, n
		}
	}
	profile = or(p.param("profile"), profile)
	keys := false
	if _, set, _ := p.env("AWS_ACCESS_KEY_ID"); set {
		keys = true
	}
	file := ".aws/config"
	text, err := p.home(file)
	if err != nil && !absent(err) {
		return fmt.Errorf("read aws configuration: %w", err)
	}
	if text == "" && profile == "" && !keys {
		return nil
	}
	if keys && p.param("profile") == "" {
		p.put("aws_profile", "from the environment's keys")
	} else {
		p.put("aws_profile", or(profile, "default"))
	}
	p.put("aws_profile_from", from)
	section := "default"
	if profile != "" && profile != "default" {
		section = "profile " + profile
	}
	settings := iniSection(text, section)
	region := settings["region"]
	for _, n := range []string{"AWS_DEFAULT_REGION", "AWS_REGION"} {
		if v, set, _ := p.env(n); set && v != "" {
			region = v
		}
	}
	p.put("aws_region", region)
	account := settings["sso_account_id"]
	if account == "" {
		if arn := strings.Split(settings["role_arn"], ":"); len(arn) > 4 {
			account = arn[4]
		}
	}
	if !keys {
		p.put("aws_account", account)
	}
	return nil
}

// iniSection is one section of an ini file.
func iniSection(text, want string) map[string]string {
	out := map[string]string{}
	in := false
	for _, l := range lines(text, "#") {
		if strings.HasPrefix(l, "[") {
			in = strings.Trim(l, "[] ") == want
			continue
		}
		if k, v, ok := strings.Cut(l, "="); ok && in {
			out[strings.TrimSpace(k)] = strings.TrimSpace(v)
		}
	}
	return out
}

func (p *probe) gcloud() error {
	dir := ".config/gcloud"
	name, set, _ := p.env("CLOUDSDK_ACTIVE_CONFIG_NAME")
	if !set {
		text, err := p.home(dir + "/active_config")
		if absent(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read gcloud configuration: %w", err)
		}
		name = strings.TrimSpace(text)
	}
	if !envName.MatchString(strings.ReplaceAll(name, "-", "_")) {
		return nil
	}
	p.put("gcloud_config", name)
	text, err := p.home(dir + "/configurations/config_" + name)
	if err != nil && !absent(err) {
		return fmt.Errorf("read gcloud configuration: %w", err)
	}
	core := iniSection(text, "core")
	project := core["project"]
	if v, set, _ := p.env("CLOUDSDK_CORE_PROJECT"); set && v != "" {
		project = v
	}
	p.put("gcloud_project", project)
	p.put("gcloud_account", core["account"])
	return nil
}

// docker: which daemon the client talks to.
func (p *probe) docker() error {
	context := p.param("context")
	host, set, _ := p.env("DOCKER_HOST")
	if set && host != "" {
		p.put("docker_context", "DOCKER_HOST")
		p.put("docker_host_class", p.hostOf(host))
		return nil
	}
	if v, set, _ := p.env("DOCKER_CONTEXT"); set && v != "" && context == "" {
		context = v
	}
	if _, set, _ := p.env("DOCKER_CONFIG"); set {
		return nil
	}
	text, err := p.home(".docker/config.json")
	if err != nil && !absent(err) {
		return fmt.Errorf("read docker configuration: %w", err)
	}
	if context == "" && text != "" {
		var c struct {
			Current string `json:"currentContext"`
		}
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			return fmt.Errorf("read docker configuration: %w", err)
		}
		context = c.Current
	}
	context = or(context, "default")
	p.put("docker_context", context)
	if context == "default" {
		p.put("docker_host_class", "local")
		return nil
	}
	if e, err := p.dockerEndpoint(context); err == nil {
		p.put("docker_host_class", p.hostOf(e))
	}
	return nil
}

// dockerEndpoint reads a context's metadata, which stands under the hash of its
// name.
func (p *probe) dockerEndpoint(name string) (string, error) {
	text, err := p.home(".docker/contexts/meta/" + sha256Hex(name) + "/meta.json")
	if err != nil {
		return "", err
	}
	var m struct {
		Endpoints struct {
			Docker struct {
				Host string `json:"Host"`
			} `json:"docker"`
		} `json:"Endpoints"`
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return "", fmt.Errorf("read docker context: %w", err)
	}
	return m.Endpoints.Docker.Host, nil
}
