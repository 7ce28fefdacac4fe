package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const script = "../cluster"

// Two at once: they share neither ports nor files, and each cleans up after itself.
func TestTwoClustersSideBySide(t *testing.T) {
	bin := strings.TrimSpace(run(t, script, "bin"))
	for _, name := range []string{"one", "two"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "cluster")
			t.Cleanup(func() { exec.Command(script, "stop", dir).Run() })

			began := time.Now()
			out := run(t, script, "start", dir, "--kwok", "--nodes", "2")
			kubeconfig := strings.TrimSpace(out)
			t.Logf("up after %.1f s", time.Since(began).Seconds())
			kubectl := func(args ...string) string {
				t.Helper()
				return run(t, filepath.Join(bin, "kubectl"), append([]string{"--kubeconfig", kubeconfig}, args...)...)
			}

			aDeploymentRollsOut(t, kubectl)
			aStuckPodStallsARollout(t, kubectl)
			componentsComeBack(t, dir, kubectl)

			rss, pss := memory(t, dir)
			t.Logf("memory: %d MB resident in sum, %d MB with shared pages counted once", rss/1024, pss/1024)

			began = time.Now()
			run(t, script, "stop", dir)
			t.Logf("stopped after %.1f s", time.Since(began).Seconds())
			if exists(dir) {
				t.Errorf("%s is still there", dir)
			}
			if left := processes(dir); len(left) > 0 {
				t.Errorf("processes are left: %v", left)
			}
			run(t, script, "stop", dir) // stops nothing, and that is fine
		})
	}
}

type kubectlFunc func(args ...string) string

func aDeploymentRollsOut(t *testing.T, kubectl kubectlFunc) {
	began := time.Now()
	kubectl("create", "deployment", "web", "--image=registry.test:5000/web:1", "--replicas=2")
	kubectl("wait", "deployment/web", "--for=condition=Available", "--timeout=20s")
	t.Logf("available after %.1f s", time.Since(began).Seconds())

	before := podNames(kubectl)
	began = time.Now()
	kubectl("rollout", "restart", "deployment/web")
	kubectl("rollout", "status", "deployment/web", "--timeout=20s")
	t.Logf("restarted after %.1f s", time.Since(began).Seconds())

	for name := range podNames(kubectl) {
		if before[name] {
			t.Errorf("pod %s survived the rollout", name)
		}
	}
	var pod struct {
		Status struct {
			ContainerStatuses []struct {
				ImageID string
				State   struct{ Running struct{ StartedAt time.Time } }
			}
		}
	}
	decode(t, kubectl("get", "pods", "-l=app=web", "-o=jsonpath={.items[0]}"), &pod)
	container := pod.Status.ContainerStatuses[0]
	if !strings.HasPrefix(container.ImageID, "registry.test:5000/web@sha256:") {
		t.Errorf("imageID is %q", container.ImageID)
	}
	if age := time.Since(container.State.Running.StartedAt); age > time.Minute {
		t.Errorf("the container claims to have started %s ago", age)
	}
}

func aStuckPodStallsARollout(t *testing.T, kubectl kubectlFunc) {
	for _, change := range []string{
		`{"spec": {"template": {"metadata": {"labels": {"restamp.test/stuck": "true"}}}}}`,
		`{"spec": {"template": {"metadata": {"annotations": {"restamp.test/stuck": "true"}}}}}`,
		`{"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "bad"}]}}}}`,
		`{"spec": {"template": {"spec": {"initContainers": [{"name": "init", "image": "bad"}]}}}}`,
	} {
		before := podNames(kubectl)
		kubectl("patch", "deployment/web", "--patch", change)
		reasons := func() string {
			return kubectl("get", "pods", "-l=app=web", "-o=jsonpath={.items[*].status..waiting.reason}")
		}
		for deadline := time.Now().Add(10 * time.Second); !strings.Contains(reasons(), "ErrImagePull"); {
			if time.Now().After(deadline) {
				t.Fatalf("%s: no pod is stuck", change)
			}
		}
		time.Sleep(time.Second) // for a wrong step to happen
		after := podNames(kubectl)
		for name := range before {
			if !after[name] {
				t.Errorf("%s: pod %s of the old revision is gone", change, name)
			}
		}
		if len(after) != len(before)+1 {
			t.Errorf("%s: %d pods became %d", change, len(before), len(after))
		}
		kubectl("rollout", "undo", "deployment/web")
		kubectl("rollout", "status", "deployment/web", "--timeout=20s")
	}
}

func componentsComeBack(t *testing.T, dir string, kubectl kubectlFunc) {
	for _, component := range []string{"kube-apiserver", "etcd", "kube-controller-manager", "kube-scheduler", "kwok"} {
		run(t, script, "kill", dir, component)
		began := time.Now()
		run(t, script, "restart", dir, component) // it is down
		down := time.Since(began)
		began = time.Now()
		run(t, script, "restart", dir, component) // it is up
		t.Logf("%s is back after %.1f s from a kill, after %.1f s from a stop", component, down.Seconds(), time.Since(began).Seconds())
	}
	began := time.Now()
	kubectl("rollout", "restart", "deployment/web")
	kubectl("rollout", "status", "deployment/web", "--timeout=60s")
	t.Logf("the next rollout took %.1f s", time.Since(began).Seconds())
}

// Containers really run, and nothing of them stays on the machine.
func TestARealNode(t *testing.T) {
	if err := nodeIsPossible(); err != nil {
		t.Skipf("SKIPPED, as no real node can run here: %v", err)
	}
	bin := strings.TrimSpace(run(t, script, "bin"))
	dir := filepath.Join(t.TempDir(), "cluster")
	t.Cleanup(func() { exec.Command(script, "stop", dir).Run() })
	began := time.Now()
	kubeconfig := strings.TrimSpace(run(t, script, "start", dir, "--node"))
	t.Logf("up after %.1f s", time.Since(began).Seconds())
	kubectl := func(args ...string) string {
		t.Helper()
		return run(t, filepath.Join(bin, "kubectl"), append([]string{"--kubeconfig", kubeconfig}, args...)...)
	}

	run(t, script, "push", dir, "app:2", "team/web:1")
	began = time.Now()
	kubectl("create", "deployment", "web", "--image=registry.test/team/web:1", "--replicas=2")
	kubectl("rollout", "status", "deployment/web", "--timeout=60s")
	t.Logf("available after %.1f s", time.Since(began).Seconds())
	if said := kubectl("exec", "deployment/web", "--", "/busybox", "echo", "hello"); said != "hello\n" {
		t.Errorf("a command in a container said %q", said)
	}
	run(t, script, "restart", dir, "kubelet")
	run(t, script, "restart", dir, "containerd")
	kubectl("rollout", "restart", "deployment/web")
	kubectl("rollout", "status", "deployment/web", "--timeout=60s")

	cluster, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	run(t, script, "stop", dir)
	t.Logf("stopped after %.1f s", time.Since(began).Seconds())
	if left := processes(dir); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	if left := cluster.Node.processes(dir); len(left) > 0 {
		t.Errorf("processes are left in its pods: %v", left)
	}
	if left := mountsBelow(dir); len(left) > 0 {
		t.Errorf("mounts are left: %v", left)
	}
	for _, path := range []string{"/sys/class/net/" + cluster.Node.bridge(), "/sys/fs/cgroup/" + cluster.Node.bridge(), "/sys/fs/cgroup/cpu/" + cluster.Node.bridge()} {
		if exists(path) {
			t.Errorf("%s is left", path)
		}
	}
}

func TestAFailedStartNamesTheComponent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	bin := t.TempDir()
	// A program that refuses etcd's flags.
	ls, err := exec.LookPath("ls")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(ls, filepath.Join(bin, "etcd")); err != nil {
		t.Fatal(err)
	}
	_, err = start(t.Context(), dir, bin, Options{})
	if err == nil || !strings.Contains(err.Error(), "etcd stopped while starting") || !strings.Contains(err.Error(), "--data-dir") {
		t.Error(err)
	}
	if err := stop(dir); err != nil {
		t.Error(err)
	}
	if exists(dir) {
		t.Errorf("%s is still there", dir)
	}
}

func TestAFolderOfSomebodyElseIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := start(t.Context(), dir, "", Options{}); err == nil {
		t.Error("a cluster was started in it")
	}
	if err := stop(dir); err == nil {
		t.Error("stop accepted it")
	}
	if !exists(filepath.Join(dir, "precious")) {
		t.Error("the file is gone")
	}
}

func podNames(kubectl kubectlFunc) map[string]bool {
	names := map[string]bool{}
	for _, name := range strings.Fields(kubectl("get", "pods", "-l=app=web", "-o=name")) {
		names[name] = true
	}
	return names
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, stderr.Bytes())
	}
	return string(out)
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

// processes finds all that work in a cluster's folder, whether it knows of them or not.
func processes(dir string) (pids []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		if cmdline, err := os.ReadFile(path); err == nil && bytes.Contains(cmdline, []byte(dir+"/")) {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}

func memory(t *testing.T, dir string) (rss, pss int) {
	for _, pid := range processes(dir) {
		content, err := os.ReadFile("/proc/" + pid + "/smaps_rollup")
		if err != nil {
			t.Log(err)
			continue
		}
		for line := range strings.Lines(string(content)) {
			var kb int
			if _, err := fmt.Sscanf(line, "Rss: %d kB", &kb); err == nil {
				rss += kb
			}
			if _, err := fmt.Sscanf(line, "Pss: %d kB", &kb); err == nil {
				pss += kb
			}
		}
	}
	return rss, pss
}
