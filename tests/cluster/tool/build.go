package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A Program is a Go module in a folder of its own, so that one's dependencies can't move another's. Without a package
// there is nothing to build, and its link is to the folder that extra fills.
type Program struct {
	folder  string   // beside this one; also the name of the binary
	pkg     string   // what to build in it
	version string   // the module whose version it reports
	links   []string // the names to start it by
	ldflags func(version string) string
	// extra adds to dir what the program needs at run time, from its module in the module cache.
	extra func(source, module, dir string) error
	// oldest is a folder with other versions of the modules, for the oldest Kubernetes that we support.
	oldest string
}

var programs = []Program{
	{
		folder:  "controlplane",
		pkg:     ".",
		version: "k8s.io/kubernetes",
		links:   []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kubelet"},
		ldflags: func(version string) string {
			// kubectl refuses a server without a version.
			number := strings.Split(strings.TrimPrefix(version, "v"), ".")
			const at = " -X k8s.io/component-base/version."
			return at + "gitVersion=" + version + at + "gitMajor=" + number[0] + at + "gitMinor=" + number[1]
		},
		oldest: "oldest",
	},
	{
		folder:  "kwok",
		pkg:     "sigs.k8s.io/kwok/cmd/kwok",
		version: "sigs.k8s.io/kwok",
		links:   []string{"kwok"},
		ldflags: func(version string) string {
			return " -X sigs.k8s.io/kwok/pkg/consts.Version=" + version
		},
		extra: collectStages,
	},
	{
		folder:  "helm",
		pkg:     "helm.sh/helm/v4/cmd/helm",
		version: "helm.sh/helm/v4",
		links:   []string{"helm"},
		ldflags: func(version string) string {
			return " -X helm.sh/helm/v4/internal/version.version=" + version
		},
	},
	{
		folder:  "prometheus-operator",
		version: "github.com/prometheus-operator/prometheus-operator",
		links:   []string{"prometheus-operator"},
		ldflags: func(string) string { return "" },
		extra:   collectMonitors,
	},
}

// build makes what isn't in the cache yet, and returns the folder with a link for each program.
func build(ctx context.Context) (bin string, err error) {
	source, cache := os.Getenv("RESTAMP_CLUSTER_SOURCE"), os.Getenv("RESTAMP_CACHE")
	if source == "" || cache == "" {
		return "", errors.New("run the script tests/cluster/cluster: it says where the sources and the cache are")
	}
	oldest, err := wantsOldest()
	if err != nil {
		return "", err
	}
	whole := sha256.New()
	dirs := make([]string, len(programs))
	for i, program := range programs {
		key, err := program.key(source, oldest)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(whole, program.folder, key, program.links)
		dirs[i] = filepath.Join(cache, program.folder+"-"+key)
	}
	bin = filepath.Join(cache, fmt.Sprintf("bin-%x", whole.Sum(nil)[:8]))
	if exists(bin) {
		return bin, nil
	}

	unlock, err := lock(filepath.Join(cache, "build.lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if exists(bin) { // somebody else's build was what we waited for
		return bin, nil
	}
	for i, program := range programs {
		if exists(dirs[i]) {
			continue
		}
		if err := program.build(ctx, source, oldest, dirs[i]); err != nil {
			return "", fmt.Errorf("build %s: %w", program.folder, err)
		}
	}
	return bin, wholeOrNothing(bin, func(dir string) error {
		for i, program := range programs {
			for _, name := range program.links {
				if err := os.Symlink(filepath.Join(dirs[i], program.folder), filepath.Join(dir, name)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// wantsOldest says whether the cluster is to be one of the oldest Kubernetes that we support.
func wantsOldest() (bool, error) {
	const name = "RESTAMP_KUBERNETES"
	switch which := os.Getenv(name); which {
	case "", "newest":
		return false, nil
	case "oldest":
		return true, nil
	default:
		return false, fmt.Errorf("%s is %q: it must be newest or oldest", name, which)
	}
}

// key changes when something changes that the program is built from.
func (p Program) key(source string, oldest bool) (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, p.pkg, p.ldflags("v0.0.0"))
	folders := []string{p.folder}
	if oldest && p.oldest != "" {
		folders = append(folders, p.oldest)
	}
	for _, folder := range folders {
		if err := addFolder(sum, filepath.Join(source, folder)); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%x", sum.Sum(nil)[:8]), nil
}

func addFolder(sum io.Writer, folder string) error {
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		fmt.Fprintln(sum, strings.TrimPrefix(path, folder), len(content))
		sum.Write(content)
		return err
	})
}

func (p Program) build(ctx context.Context, source string, oldest bool, target string) error {
	folder := goFolder{path: filepath.Join(source, p.folder)}
	if oldest && p.oldest != "" {
		folder.modfile = filepath.Join(source, p.oldest, "go.mod")
	}
	version, err := folder.list(ctx, "{{.Version}}", p.version)
	if err != nil {
		return err
	}
	return wholeOrNothing(target, func(dir string) error {
		defer progress("building " + p.folder + " " + version)()
		if p.pkg != "" {
			_, err := folder.run(ctx, "build", "-trimpath", "-buildvcs=false",
				"-ldflags", "-s -w"+p.ldflags(version), "-o", filepath.Join(dir, p.folder), p.pkg)
			if err != nil {
				return err
			}
		}
		if p.extra == nil {
			return nil
		}
		module, err := folder.list(ctx, "{{.Dir}}", p.version)
		if err != nil {
			return err
		}
		return p.extra(folder.path, module, dir)
	})
}

// stagesFile holds what kwok does to nodes and pods, beside its binary.
const stagesFile = "stages.yaml"

// collectStages joins kwok's own stages for nodes and ours for pods.
func collectStages(source, module, dir string) error {
	var all bytes.Buffer
	for _, path := range []string{
		filepath.Join(module, "kustomize/stage/node/fast/node-initialize.yaml"),
		filepath.Join(module, "kustomize/stage/node/heartbeat/node-heartbeat.yaml"),
		filepath.Join(source, "stages/pod.yaml"),
	} {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		all.Write(content)
		all.WriteString("\n---\n")
	}
	return os.WriteFile(filepath.Join(dir, stagesFile), all.Bytes(), 0o644)
}

// collectMonitors takes the custom resource definitions of what a chart may hold for Prometheus.
func collectMonitors(_, module, dir string) error {
	target := filepath.Join(dir, "prometheus-operator")
	if err := os.Mkdir(target, 0o755); err != nil {
		return err
	}
	for _, plural := range []string{"podmonitors", "servicemonitors", "prometheusrules"} {
		name := "monitoring.coreos.com_" + plural + ".yaml"
		content, err := os.ReadFile(filepath.Join(module, "example/prometheus-operator-crd", name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(target, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// A goFolder is where go runs: the folder of a module, perhaps with another go.mod than its own.
type goFolder struct{ path, modfile string }

func (f goFolder) list(ctx context.Context, format, module string) (string, error) {
	// Without a download -m knows no folder.
	if _, err := f.run(ctx, "mod", "download", module); err != nil {
		return "", err
	}
	out, err := f.run(ctx, "list", "-m", "-f", format, module)
	return strings.TrimSpace(out), err
}

func (f goFolder) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = f.path
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if f.modfile != "" {
		cmd.Env = append(cmd.Env, "GOFLAGS="+os.Getenv("GOFLAGS")+" -tags=oldest -modfile="+f.modfile)
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", args[0], err)
	}
	return string(out), nil
}

// progress says every 15 seconds that something is still going on, until the returned function is called.
func progress(what string) (done func()) {
	began := time.Now()
	say("%s", what)
	ticker, ended := time.NewTicker(15*time.Second), make(chan struct{})
	go func() {
		for {
			select {
			case <-ticker.C:
				say("%s: %.0f s", what, time.Since(began).Seconds())
			case <-ended:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(ended)
		say("%s: done after %.0f s", what, time.Since(began).Seconds())
	}
}

// lock waits for its turn. The kernel frees the lock of a process that dies.
func lock(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		say("waiting for another build")
		for {
			err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
			if !errors.Is(err, syscall.EINTR) {
				break
			}
		}
	}
	return func() { file.Close() }, err
}

// wholeOrNothing fills a folder under another name first, so that an interrupted build never looks finished.
func wholeOrNothing(target string, fill func(dir string) error) error {
	partial := target + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	if err := os.MkdirAll(partial, 0o755); err != nil {
		return err
	}
	if err := fill(partial); err != nil {
		os.RemoveAll(partial)
		return err
	}
	return os.Rename(partial, target)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
