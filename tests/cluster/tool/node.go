package main

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/template"
)

// A Node runs containers on this machine: a kubelet, and what Debian has for it. Several can run side by side.
//
// All that is its own carries its number: a bridge, with the network 10.NUMBER.0.0/16. The bridge has the network's first
// address, on which the API server listens, and which is that of Service `kubernetes` too. So pods reach the API server without
// kube-proxy, and no rule of the machine's firewall changes.
type Node struct {
	Number   int
	Registry string // the address of the registry that has all images, whatever their names say
}

//go:embed node
var nodeFiles embed.FS

const ipProgram = "/sbin/ip"

// nodePrograms are those that it needs beside our own, and the packages of Debian that have them.
var nodePrograms = map[string]string{
	"/usr/bin/buildah":         "buildah",
	"/usr/bin/containerd":      "containerd",
	"/usr/bin/docker-registry": "docker-registry",
	"/usr/bin/skopeo":          "skopeo",
	"/usr/lib/cni/bridge":      "containernetworking-plugins",
	"/usr/sbin/runc":           "runc",
	ipProgram:                  "iproute2",
	"/bin/busybox":             "busybox-static",
}

func (n *Node) bridge() string  { return fmt.Sprintf("restamp-%d", n.Number) }
func (n *Node) network() string { return fmt.Sprintf("10.%d", n.Number) }
func (n *Node) host() string    { return n.network() + ".0.1" }

// nodeIsPossible tells what is missing.
func nodeIsPossible() error {
	if os.Geteuid() != 0 {
		return errors.New("a node needs root")
	}
	var missing []string
	for path, pkg := range nodePrograms {
		if !exists(path) {
			missing = append(missing, pkg)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Errorf("programs are missing for a node: apt-get install --no-install-recommends %s", strings.Join(missing, " "))
	}
	// A container's root often may not.
	try := fmt.Sprintf("try-%d", os.Getpid())
	if err := perform(ipProgram, "link", "add", try, "type", "bridge"); err != nil {
		return fmt.Errorf("a node needs more rights than root has here: %w", err)
	}
	return perform(ipProgram, "link", "delete", try)
}

// claimNode finds a number that nobody has. Making the bridge is what claims it.
func claimNode(registryPort int) (*Node, error) {
	if err := nodeIsPossible(); err != nil {
		return nil, err
	}
	var err error
	for number := 200; number < 250; number++ {
		node := &Node{Number: number, Registry: fmt.Sprintf("127.0.0.1:%d", registryPort)}
		if err = perform(ipProgram, "link", "add", node.bridge(), "type", "bridge"); err != nil {
			continue
		}
		if err = node.raise(); err == nil {
			return node, nil
		}
		node.release()
	}
	return nil, fmt.Errorf("no network for a node: %w", err)
}

func (n *Node) raise() error {
	if err := perform(ipProgram, "address", "add", n.host()+"/16", "dev", n.bridge()); err != nil {
		return err
	}
	return perform(ipProgram, "link", "set", n.bridge(), "up")
}

func (n *Node) release() error {
	if !exists("/sys/class/net/" + n.bridge()) {
		return nil
	}
	return perform(ipProgram, "link", "delete", n.bridge())
}

// nodeName is also what its pods say.
const nodeName = "node-1"

// nodeComponents are those that make the node, in the order in which they need each other.
func nodeComponents(dir, host string, ports []int) []Component {
	in := func(name string) string { return filepath.Join(dir, name) }
	plain := func(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", ports[port]) }
	return []Component{
		{
			Name:  "docker-registry",
			Path:  "/usr/bin/docker-registry",
			Args:  []string{"serve", in("registry.yaml")},
			Ready: plain(registryPort) + "/v2/",
		},
		{
			Name:  "containerd",
			Path:  "/usr/bin/containerd",
			Args:  []string{"--config", in("containerd.toml")},
			Ready: plain(containerdPort) + "/v1/metrics",
		},
		{
			Name: "kubelet",
			Args: []string{
				"--config=" + in("kubelet.yaml"),
				"--kubeconfig=" + in("kubeconfig"),
				"--root-dir=" + in("kubelet"),
				"--cert-dir=" + in("pki"),
				"--hostname-override=" + nodeName,
				"--node-ip=" + host,
			},
			Ready: plain(kubeletHealthzPort) + "/healthz",
		},
	}
}

// writeFiles writes what the node's programs are told.
func (n *Node) writeFiles(dir string, ports []int) error {
	values := map[string]any{
		"Dir": dir, "Bridge": n.bridge(), "Network": n.network(), "Host": n.host(), "Registry": n.Registry,
		"Metrics": fmt.Sprintf("127.0.0.1:%d", ports[containerdPort]),
		"Kubelet": ports[kubeletPort], "Healthz": ports[kubeletHealthzPort],
	}
	templates, err := template.ParseFS(nodeFiles, "node/*")
	if err != nil {
		return err
	}
	for name, path := range map[string]string{
		"containerd.toml": "containerd.toml",
		"cni.json":        "cni/restamp.conflist",
		"kubelet.yaml":    "kubelet.yaml",
		"registry.yaml":   "registry.yaml",
		"registries.toml": "registries/_default/hosts.toml",
		"Dockerfile":      "image/Dockerfile",
	} {
		var text strings.Builder
		if err := templates.ExecuteTemplate(&text, name, values); err != nil {
			return err
		}
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
			return err
		}
	}
	// The kubelet wants to find the one that it is told.
	for _, root := range cgroupRoots() {
		if err := os.MkdirAll(filepath.Join(root, n.bridge()), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// The images that a node's registry has from the start. The first is what containerd.toml says.
var nodeImages = []string{"pause:1", "app:1", "app:2", "app:3"}

// fillRegistry builds them. They differ in a label, and so in their digests.
func (c *Cluster) fillRegistry() error {
	folder := filepath.Join(c.Dir, "image")
	if err := perform("cp", "/bin/busybox", folder); err != nil {
		return err
	}
	buildah := []string{"buildah", "--root", filepath.Join(c.Dir, "buildah"), "--runroot", filepath.Join(c.Dir, "buildah-run"),
		"--storage-driver", "vfs"}
	for _, image := range nodeImages {
		archive := "oci-archive:" + filepath.Join(folder, strings.ReplaceAll(image, ":", "-")+".tar")
		err := perform(append(buildah, "build", "--quiet", "--build-arg", "VERSION="+image, "--tag", archive, folder)...)
		if err != nil {
			return err
		}
		if err := c.push(archive, image); err != nil {
			return err
		}
	}
	return nil
}

// push copies an image, from wherever skopeo reads, into the node's registry.
func (c *Cluster) push(source, name string) error {
	if c.Node == nil {
		return fmt.Errorf("the cluster in %s has no registry: start it with --node", c.Dir)
	}
	// A name without a transport is one of our own images.
	if !strings.Contains(source, ":/") {
		source = "docker://" + c.Node.Registry + "/" + source
	}
	return perform("skopeo", "copy", "--quiet", "--insecure-policy", "--src-tls-verify=false", "--dest-tls-verify=false",
		source, "docker://"+c.Node.Registry+"/"+name)
}

// clean ends and removes what the kubelet and containerd, which are gone by now, have made outside the folder or mounted in it.
func (n *Node) clean(dir string) error {
	for _, pid := range n.processes(dir) {
		if err := send(pid, syscall.SIGKILL); err != nil {
			return err
		}
	}
	for _, pid := range n.processes(dir) {
		if !awaitGone(pid, killPatience) {
			return fmt.Errorf("process %d of the node survived SIGKILL", pid)
		}
	}
	for _, point := range mountsBelow(dir) {
		if err := syscall.Unmount(point, syscall.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", point, err)
		}
	}
	for _, root := range cgroupRoots() {
		if err := removeCgroup(filepath.Join(root, n.bridge())); err != nil {
			return err
		}
	}
	removeStrays(dir)
	return n.release()
}

// processes are those in its pods, and the shims above them, which carry the address of our containerd.
func (n *Node) processes(dir string) (pids []int) {
	for _, root := range cgroupRoots() {
		pids = append(pids, cgroupProcesses(filepath.Join(root, n.bridge()))...)
	}
	address := "\x00" + filepath.Join(dir, "containerd.sock") + "\x00"
	for _, pid := range allProcesses() {
		// Not commandLine, which waits for those that show none, as the kernel's threads do.
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.Contains(string(line), "containerd-shim") && strings.Contains(string(line), address) {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

// removeStrays removes what the kubelet and the shims have in folders that nobody can choose: links to logs, and sockets.
func removeStrays(dir string) {
	links, _ := filepath.Glob("/var/log/containers/*")
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, dir+"/") {
			os.Remove(link)
		}
	}
	addresses, _ := filepath.Glob(filepath.Join(dir, "containerd/state/io.containerd.runtime.v2.task/*/*/address"))
	for _, path := range addresses {
		if address, err := os.ReadFile(path); err == nil {
			os.Remove(strings.TrimPrefix(string(address), "unix://"))
		}
	}
}

// perform runs a program whose output matters only if it fails.
func perform(words ...string) error {
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(words, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
