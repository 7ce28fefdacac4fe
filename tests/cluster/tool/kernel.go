package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// cgroupRoots are the hierarchies of version 1, or the one of version 2.
func cgroupRoots() []string {
	const root = "/sys/fs/cgroup"
	if exists(filepath.Join(root, "cgroup.procs")) {
		return []string{root}
	}
	procs, _ := filepath.Glob(filepath.Join(root, "*", "cgroup.procs"))
	for i, path := range procs {
		procs[i] = filepath.Dir(path)
	}
	return procs
}

// cgroupProcesses are those in this group and in those below it.
func cgroupProcesses(group string) (pids []int) {
	filepath.WalkDir(group, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "cgroup.procs" {
			return nil
		}
		content, _ := os.ReadFile(path)
		for _, word := range strings.Fields(string(content)) {
			if pid, err := strconv.Atoi(word); err == nil && pid != 0 {
				pids = append(pids, pid)
			}
		}
		return nil
	})
	return pids
}

// removeCgroup goes from the leaves up, as only an empty group can be removed. Its files go by themselves.
func removeCgroup(group string) error {
	var groups []string
	filepath.WalkDir(group, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			groups = append(groups, path)
		}
		return nil
	})
	for _, group := range slices.Backward(groups) {
		if err := os.Remove(group); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// mountsBelow lists the mount points in a folder, those first that were mounted last.
func mountsBelow(dir string) (points []string) {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	content, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], dir+"/") {
			points = append(points, fields[4])
		}
	}
	slices.Reverse(points)
	return points
}

func allProcesses() (pids []int) {
	paths, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range paths {
		if pid, err := strconv.Atoi(filepath.Base(path)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
