package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Options are what a user may choose.
type Options struct {
	Kwok         bool
	Nodes        int    // of kwok
	Node         bool   // a real one
	FeatureGates string // of the API server, as its own flag takes them
}

// A Cluster is all that a later command has to know of one that was started; it is kept in its folder.
type Cluster struct {
	Dir        string
	Token      string
	Components []Component // in the order in which they start
	Node       *Node       // if it has a real one
}

// A Component is one process of a cluster. It comes back with the same flags, and so with the same ports.
type Component struct {
	Name  string
	Path  string
	Args  []string
	Ready string // the URL that answers 200 once it is ready
}

const stateFile = "cluster.json"

func (c *Cluster) kubeconfig() string { return filepath.Join(c.Dir, "kubeconfig") }
func (c *Cluster) apiServer() string {
	return strings.TrimSuffix(c.Components[1].Ready, "/readyz")
}

// start returns when pods can be created: with nodes, also scheduled.
func start(ctx context.Context, dir, bin string, options Options) (*Cluster, error) {
	if old, err := open(dir); err == nil {
		if slices.ContainsFunc(old.Components, func(c Component) bool { return old.pid(c) != 0 }) {
			return nil, fmt.Errorf("a cluster is running in %s", dir)
		}
		if err := os.RemoveAll(dir); err != nil { // what a start that failed left for its reader
			return nil, err
		}
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("%s is not empty: stop removes the whole folder, so it must be the cluster's own", dir)
	}
	for _, folder := range []string{"", "log", "pids", "pki"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			return nil, err
		}
	}
	ports, err := freePorts(portCount)
	if err != nil {
		return nil, err
	}
	cluster := &Cluster{Dir: dir, Token: randomToken()}
	host := loopback
	if options.Node {
		if cluster.Node, err = claimNode(ports[registryPort]); err != nil {
			return nil, err
		}
		host, ports[apiServerPort] = cluster.Node.host(), 443 // as Service kubernetes has it
	}
	cluster.Components = components(dir, bin, host, ports, options)
	if err := cluster.save(); err != nil {
		return nil, err
	}
	if err := cluster.writeCredentials(host, ports[apiServerPort]); err != nil {
		return nil, err
	}
	if cluster.Node != nil {
		if err := cluster.Node.writeFiles(dir, ports); err != nil {
			return nil, err
		}
	}

	err = cluster.bringUp(ctx, options)
	if err != nil {
		cluster.killAll()
		return nil, fmt.Errorf("%w\nits files stay in %s: read log/, then run stop", err, dir)
	}
	return cluster, nil
}

func (c *Cluster) bringUp(ctx context.Context, options Options) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute) // ten seconds on an idle machine
	defer cancel()

	// The API server needs etcd, all others need the API server, and none of these each other.
	etcd, apiServer, others := c.Components[0], c.Components[1], c.Components[2:]
	for _, group := range [][]Component{{etcd}, {apiServer}, others} {
		for _, component := range group {
			if err := c.spawn(component); err != nil {
				return fmt.Errorf("start %s: %w", component.Name, err)
			}
		}
		for _, component := range group {
			if err := c.awaitReady(ctx, component); err != nil {
				return err
			}
		}
	}

	if options.Node {
		// Before a pod needs them.
		if err := c.fillRegistry(); err != nil {
			return err
		}
	}
	nodes := 0
	if options.Kwok {
		nodes = options.Nodes
	}
	for i := range nodes {
		if err := c.createNode(ctx, fmt.Sprintf("node-%d", i+1)); err != nil {
			return err
		}
	}
	// Pods are refused before it exists.
	err := c.await(ctx, "the default ServiceAccount", "kube-controller-manager", func() error {
		return c.get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", nil)
	})
	if err != nil {
		return err
	}
	for i := range nodes {
		name := fmt.Sprintf("node-%d", i+1)
		err := c.await(ctx, name, "kwok", func() error { return c.nodeIsReady(ctx, name) })
		if err != nil {
			return err
		}
	}
	if options.Node {
		return c.await(ctx, nodeName, "kubelet", func() error { return c.nodeIsReady(ctx, nodeName) })
	}
	return nil
}

func (c *Cluster) createNode(ctx context.Context, name string) error {
	node := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": %q, "labels":
		{"kubernetes.io/hostname": %[1]q, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}}}`, name)
	return c.request(ctx, http.MethodPost, "/api/v1/nodes", strings.NewReader(node), nil)
}

func (c *Cluster) nodeIsReady(ctx context.Context, name string) error {
	var node struct {
		Spec   struct{ Taints []struct{ Key string } }
		Status struct {
			Conditions []struct{ Type, Status string }
		}
	}
	if err := c.get(ctx, "/api/v1/nodes/"+name, &node); err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		// Each node is born with a taint, and the controller manager removes it a moment after the node is ready.
		if condition.Type == "Ready" && condition.Status == "True" && len(node.Spec.Taints) == 0 {
			return nil
		}
	}
	return errors.New("not ready")
}

func (c *Cluster) restart(ctx context.Context, name string) error {
	component, err := c.component(name)
	if err != nil {
		return err
	}
	if err := c.terminate(component); err != nil {
		return err
	}
	if err := c.spawn(component); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := c.awaitReady(ctx, component); err != nil {
		return err
	}
	// Without etcd the API server isn't ready, and it notices its return a moment later.
	if apiServer := c.Components[1]; name == "etcd" && c.pid(apiServer) != 0 {
		return c.awaitReady(ctx, apiServer)
	}
	return nil
}

func (c *Cluster) kill(name string) error {
	component, err := c.component(name)
	if err != nil {
		return err
	}
	if c.pid(component) == 0 {
		return fmt.Errorf("%s isn't running", name)
	}
	return c.killNow(component)
}

// stop is for data that nobody needs any more, hence no goodbyes: an API server takes its time for those.
func stop(dir string) error {
	if !exists(dir) {
		return nil
	}
	cluster, err := open(dir)
	if err != nil {
		return err
	}
	if err := cluster.killAll(); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// killAll goes from the last to the first, so that no component logs that another one is gone.
func (c *Cluster) killAll() error {
	var all error
	for _, component := range slices.Backward(c.Components) {
		all = errors.Join(all, c.killNow(component))
	}
	if c.Node != nil {
		all = errors.Join(all, c.Node.clean(c.Dir))
	}
	return all
}

func (c *Cluster) component(name string) (Component, error) {
	i := slices.IndexFunc(c.Components, func(c Component) bool { return c.Name == name })
	if i < 0 {
		return Component{}, fmt.Errorf("the cluster in %s has no component %q", c.Dir, name)
	}
	return c.Components[i], nil
}

// open reads what start wrote. It is also the proof that a folder is ours to remove.
func open(dir string) (*Cluster, error) {
	content, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil {
		return nil, fmt.Errorf("%s holds no cluster: %w", dir, err)
	}
	cluster := new(Cluster)
	if err := json.Unmarshal(content, cluster); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, stateFile), err)
	}
	cluster.Dir = dir
	return cluster, nil
}

func (c *Cluster) save() error {
	content, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.Dir, stateFile), content, 0o600)
}

func (c *Cluster) awaitReady(ctx context.Context, component Component) error {
	return c.await(ctx, component.Name, component.Name, func() error {
		return c.do(ctx, http.MethodGet, component.Ready, nil, nil)
	})
}

// await gives up at once when the component that must bring the thing about is dead, and shows why.
func (c *Cluster) await(ctx context.Context, what, blame string, check func() error) error {
	component, err := c.component(blame)
	if err != nil {
		return err
	}
	for {
		err := check()
		if err == nil {
			return nil
		}
		if c.pid(component) == 0 {
			return fmt.Errorf("%s stopped while starting; the end of its log:\n%s", blame, c.logTail(component))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s isn't ready (%w): %w; the end of the log of %s:\n%s", what, ctx.Err(), err, blame, c.logTail(component))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (c *Cluster) get(ctx context.Context, path string, into any) error {
	return c.request(ctx, http.MethodGet, path, nil, into)
}

func (c *Cluster) request(ctx context.Context, method, path string, body io.Reader, into any) error {
	return c.do(ctx, method, c.apiServer()+path, body, into)
}

func (c *Cluster) do(ctx context.Context, method, url string, body io.Reader, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+c.Token)
	response, err := c.client().Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s", method, url, response.Status)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(content, into)
}

func (c *Cluster) client() *http.Client {
	roots := x509.NewCertPool()
	if pem, err := os.ReadFile(c.pki("ca.crt")); err == nil {
		roots.AppendCertsFromPEM(pem)
	}
	// Keep-alive would hold a connection to a component that is about to be restarted.
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: roots},
	}}
}
