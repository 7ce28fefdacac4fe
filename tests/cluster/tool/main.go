// A Kubernetes control plane for tests, on loopback, with fake nodes if wanted. See the README beside this folder.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

const usage = `usage: cluster COMMAND

  build                           build what is missing
  bin                             print the folder of kubectl and the other programs; build them if they are missing
  start DIR [--kwok] [--nodes N] [--node] [--feature-gates GATES]
                                  start a cluster that keeps all its files in DIR; print the path of its kubeconfig
  restart DIR COMPONENT           stop a component if it runs, start it with the same flags, wait until it is ready
  kill DIR COMPONENT              send SIGKILL to a component, and leave it down
  check-node                      say what is missing for a real node on this machine
  push DIR IMAGE NAME:TAG         copy an image into the registry of a node: one of its own, such as app:1, or what skopeo
                                  reads, such as oci-archive:/path
  stop DIR                        stop the cluster and remove DIR

  --kwok     also run the scheduler, and kwok with fake nodes, so that pods become ready
  --nodes N  how many fake nodes (default 1)
  --node     also run the scheduler, and a kubelet with containerd, so that containers run on this machine; needs root
  --feature-gates GATES  those of the API server, such as WatchList=false

Components: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok; docker-registry, containerd, kubelet.
`

var errUsage = errors.New("usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := command(ctx, os.Args[1:])
	if errors.Is(err, errUsage) {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	name, args := args[0], args[1:]

	options := Options{Nodes: 1}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.Usage = func() {}
	if name == "start" {
		flags.BoolVar(&options.Kwok, "kwok", false, "")
		flags.IntVar(&options.Nodes, "nodes", options.Nodes, "")
		flags.BoolVar(&options.Node, "node", false, "")
		flags.StringVar(&options.FeatureGates, "feature-gates", "", "")
	}
	words, err := parse(flags, args)
	if err != nil || len(words) != map[string]int{"start": 1, "stop": 1, "restart": 2, "kill": 2, "push": 3}[name] {
		return errUsage
	}
	if !options.Kwok && options.Nodes != 1 || options.Nodes < 0 {
		return errors.New("--nodes needs --kwok, and a number that isn't negative")
	}
	if options.Kwok && options.Node {
		return errors.New("--kwok plays nodes, and --node is a real one: choose one of them")
	}
	var dir string
	if len(words) > 0 {
		if dir, err = filepath.Abs(words[0]); err != nil {
			return err
		}
	}

	switch name {
	case "build":
		_, err := build(ctx)
		return err
	case "bin":
		bin, err := build(ctx)
		if err != nil {
			return err
		}
		fmt.Println(bin)
		return nil
	case "start":
		bin, err := build(ctx)
		if err != nil {
			return err
		}
		began := time.Now()
		cluster, err := start(ctx, dir, bin, options)
		if err != nil {
			return err
		}
		say("up after %.1f s", time.Since(began).Seconds())
		fmt.Println(cluster.kubeconfig())
		return nil
	case "restart":
		cluster, err := open(dir)
		if err != nil {
			return err
		}
		return cluster.restart(ctx, words[1])
	case "kill":
		cluster, err := open(dir)
		if err != nil {
			return err
		}
		return cluster.kill(words[1])
	case "check-node":
		return nodeIsPossible()
	case "push":
		cluster, err := open(dir)
		if err != nil {
			return err
		}
		return cluster.push(words[1], words[2])
	case "stop":
		return stop(dir)
	default:
		return errUsage
	}
}

// parse takes flags before, between and after the other words, which the flag package alone doesn't.
func parse(flags *flag.FlagSet, args []string) (words []string, err error) {
	for {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		if flags.NArg() == 0 {
			return words, nil
		}
		words = append(words, flags.Arg(0))
		args = flags.Args()[1:]
	}
}

// say is for people: stdout is for what scripts read.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "cluster: "+format+"\n", args...)
}
