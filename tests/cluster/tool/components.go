package main

import (
	"fmt"
	"path/filepath"
	"strings"
)

// loopback is where all listen, if there is no node.
const loopback = "127.0.0.1"

// The order of the ports that a cluster has.
const (
	etcdPort = iota
	etcdPeerPort
	apiServerPort
	controllerManagerPort
	schedulerPort
	kwokPort
	registryPort
	containerdPort
	kubeletPort
	kubeletHealthzPort
	portCount
)

// components lists the processes, in the order in which they start: etcd and the API server first.
// Each has a flag with the cluster's folder in it, by which its process is known again.
func components(dir, bin, host string, ports []int, options Options) []Component {
	in := func(parts ...string) string { return filepath.Join(append([]string{dir}, parts...)...) }
	plain := func(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", ports[port]) }
	secure := func(port int) string { return fmt.Sprintf("https://%s:%d", host, ports[port]) }
	port := func(port int) string { return fmt.Sprint(ports[port]) }

	serving := func(at int) []string {
		return []string{
			"--bind-address=" + host,
			"--secure-port=" + port(at),
			"--tls-cert-file=" + in("pki", "server.crt"),
			"--tls-private-key-file=" + in("pki", "server.key"),
			"--profiling=false",
		}
	}
	// Many tests share one cluster, so what keeps a production cluster calm only makes them wait.
	hurried := []string{
		"--kubeconfig=" + in("kubeconfig"),
		"--authentication-kubeconfig=" + in("kubeconfig"),
		"--authorization-kubeconfig=" + in("kubeconfig"),
		"--leader-elect=false",
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
	}

	list := []Component{
		{
			Name: "etcd",
			Args: []string{
				"--data-dir=" + in("etcd"),
				"--listen-client-urls=" + plain(etcdPort),
				"--advertise-client-urls=" + plain(etcdPort),
				"--listen-peer-urls=" + plain(etcdPeerPort),
				"--initial-advertise-peer-urls=" + plain(etcdPeerPort),
				"--initial-cluster=default=" + plain(etcdPeerPort),
				"--unsafe-no-fsync",
				"--log-level=warn",
			},
			Ready: plain(etcdPort) + "/health",
		},
		{
			Name: "kube-apiserver",
			Args: append(serving(apiServerPort),
				"--etcd-servers="+plain(etcdPort),
				// Else it looks for an address of the machine, which one without a network doesn't have.
				"--advertise-address="+host,
				"--endpoint-reconciler-type=none",
				"--client-ca-file="+in("pki", "ca.crt"),
				"--token-auth-file="+in("pki", "tokens.csv"),
				"--authorization-mode=Node,RBAC",
				"--service-account-issuer=https://kubernetes.default.svc",
				"--service-account-key-file="+in("pki", "service-accounts.key"),
				"--service-account-signing-key-file="+in("pki", "service-accounts.key"),
				"--service-cluster-ip-range="+serviceRange(host),
				"--kubelet-preferred-address-types=InternalIP",
				"--kubelet-client-certificate="+in("pki", "server.crt"),
				"--kubelet-client-key="+in("pki", "server.key"),
				"--allow-privileged=true",
				"--delete-collection-workers=8", // namespaces go faster
			),
			Ready: secure(apiServerPort) + "/readyz",
		},
		{
			Name: "kube-controller-manager",
			Args: append(append(serving(controllerManagerPort), hurried...),
				"--service-account-private-key-file="+in("pki", "service-accounts.key"),
				"--root-ca-file="+in("pki", "ca.crt"), // else kube-root-ca.crt is empty
				"--use-service-account-credentials=true",
				"--concurrent-deployment-syncs=20",
				"--concurrent-replicaset-syncs=20",
				"--concurrent-statefulset-syncs=20",
				"--concurrent-daemonset-syncs=10",
				"--concurrent-job-syncs=10",
				"--concurrent-cron-job-syncs=10",
				"--concurrent-namespace-syncs=30",
				"--concurrent-gc-syncs=40",
				// A busy machine delays heartbeats, and a node that isn't ready would fail tests that have other subjects.
				"--node-monitor-grace-period=10m",
			),
			Ready: secure(controllerManagerPort) + "/healthz",
		},
	}
	if options.FeatureGates != "" {
		list[1].Args = append(list[1].Args, "--feature-gates="+options.FeatureGates)
	}
	if options.Kwok || options.Node {
		list = append(list, Component{
			Name:  "kube-scheduler",
			Args:  append(serving(schedulerPort), hurried...),
			Ready: secure(schedulerPort) + "/healthz",
		})
	}
	if options.Kwok {
		list = append(list,
			Component{
				Name: "kwok", // its client has no limits
				Args: []string{
					"--kubeconfig=" + in("kubeconfig"),
					"--config=" + stages(bin),
					"--manage-all-nodes=true",
					"--node-ip=127.0.0.1",
					"--cidr=10.128.0.0/10", // as its default is too small for many pods
					"--server-address=127.0.0.1:" + port(kwokPort),
				},
				Ready: plain(kwokPort) + "/healthz",
			})
	}
	if options.Node {
		list = append(list, nodeComponents(dir, host, ports)...)
	}
	for i := range list {
		if list[i].Path == "" {
			list[i].Path = filepath.Join(bin, list[i].Name)
		}
	}
	return list
}

// serviceRange holds the API server's address as its first, where that is a node's.
func serviceRange(host string) string {
	if host == loopback {
		return "10.96.0.0/16"
	}
	return host[:strings.LastIndexByte(host, '.')] + ".0/24"
}

func stages(bin string) string {
	binary, err := filepath.EvalSymlinks(filepath.Join(bin, "kwok"))
	if err != nil {
		return stagesFile // kwok then says that it is missing
	}
	return filepath.Join(filepath.Dir(binary), stagesFile)
}
