package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func (c *Cluster) log(component Component) string {
	return filepath.Join(c.Dir, "log", component.Name+".log")
}

func (c *Cluster) pidFile(component Component) string {
	return filepath.Join(c.Dir, "pids", component.Name)
}

// spawn starts a process that outlives us, and our terminal.
func (c *Cluster) spawn(component Component) error {
	log, err := os.OpenFile(c.log(component), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(component.Path, component.Args...)
	cmd.Dir = c.Dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	go cmd.Wait() // one that dies while we wait for it shall not look alive
	return os.WriteFile(c.pidFile(component), []byte(strconv.Itoa(cmd.Process.Pid)+"\n"), 0o600)
}

// pid is 0 if the component doesn't run. The kernel gives a number again to somebody else, so the number alone proves
// nothing: the process must also carry this cluster's flags.
func (c *Cluster) pid(component Component) int {
	content, err := os.ReadFile(c.pidFile(component))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return 0
	}
	if commandLine(pid) != strings.Join(append([]string{component.Path}, component.Args...), "\x00")+"\x00" {
		return 0
	}
	return pid
}

// commandLine looks twice, as a process that has just started shows an empty one for a moment, and so does one that exits.
func commandLine(pid int) string {
	for deadline := time.Now().Add(time.Second); ; time.Sleep(time.Millisecond) {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || gone(pid) || time.Now().After(deadline) {
			return ""
		}
		if len(content) > 0 {
			return string(content)
		}
	}
}

// terminate lets a component finish what it writes, but not wait for its clients: with open watches the API server would
// take a minute to say goodbye.
func (c *Cluster) terminate(component Component) error {
	if pid := c.pid(component); pid != 0 {
		if err := send(pid, syscall.SIGTERM); err != nil {
			return err
		}
		if awaitGone(pid, 2*time.Second) {
			return nil
		}
	}
	return c.killNow(component)
}

func (c *Cluster) killNow(component Component) error {
	pid := c.pid(component)
	if pid == 0 {
		return nil
	}
	if err := send(pid, syscall.SIGKILL); err != nil {
		return err
	}
	if !awaitGone(pid, killPatience) {
		return fmt.Errorf("%s (process %d) survived SIGKILL", component.Name, pid)
	}
	return nil
}

const killPatience = 20 * time.Second

func awaitGone(pid int, limit time.Duration) bool {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if gone(pid) {
			return true
		}
	}
	return false
}

// gone is true once the ports are free too. An empty command line comes too early for that: a process that exits drops
// its memory first and its sockets later. A zombie whose last thread has ended holds nothing any more.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	state := stat[bytes.LastIndexByte(stat, ')')+2:]
	return err != nil || state[0] == 'Z' && len(threads) == 1
}

func send(pid int, which syscall.Signal) error {
	err := syscall.Kill(pid, which)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

func (c *Cluster) logTail(component Component) string {
	const lines = 20
	content, err := os.ReadFile(c.log(component))
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}

// freePorts finds neighbouring ports that nobody listens on.
//
// They lie below those that the kernel gives to outgoing connections: a component that is down for a while must find its
// port free when it comes back. And the search starts where our process id says, so that two starts at the same moment
// don't choose the same ones: between this and the listening there are seconds.
func freePorts(count int) ([]int, error) {
	const first, blocks, size = 12000, 1800, 10
	for i := range blocks {
		base := first + (os.Getpid()+i)%blocks*size
		ports := make([]int, count)
		free := true
		for j := range ports {
			ports[j] = base + j
			listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", ports[j]))
			if err != nil {
				free = false
				break
			}
			listener.Close()
		}
		if free {
			return ports, nil
		}
	}
	return nil, errors.New("no free ports")
}
