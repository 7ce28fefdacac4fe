// Kubernetes' control plane, etcd, the kubelet and kubectl in one binary: they share most of their code, so one link
// takes a fraction of the time and the space of seven.
//
// The command is the first argument, or the name of the link that the program was started through. Prefer the links:
// the API server names field managers after the client's program, and a test that reads managedFields sees the difference.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata" // CronJobs with a time zone

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

var commands = map[string]func(){
	"etcd":                    func() { etcdmain.Main(os.Args) },
	"kube-apiserver":          func() { run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() { run(controllermanager.NewControllerManagerCommand()) },
	"kube-scheduler":          func() { run(scheduler.NewSchedulerCommand()) },
	"kubelet":                 func() { run(kubeletCommand()) },
	"kubectl": func() {
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			kubectlutil.CheckErr(err) // kubectl's own wording and exit codes
		}
	},
}

func run(command *cobra.Command) {
	os.Exit(cli.Run(command))
}

func main() {
	if command, ok := commands[filepath.Base(os.Args[0])]; ok {
		command()
		return
	}
	if len(os.Args) > 1 {
		if command, ok := commands[os.Args[1]]; ok {
			os.Args = os.Args[1:]
			command()
			return
		}
	}
	fmt.Fprintf(os.Stderr, "usage: %s COMMAND [ARGUMENT]..., with one of these commands:\n", os.Args[0])
	for name := range commands {
		fmt.Fprintln(os.Stderr, "  "+name)
	}
	os.Exit(2)
}
