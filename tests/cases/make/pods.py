#!/usr/bin/env python3
"""Makes the cases about running pods: plays each history on a cluster of tests/cluster and keeps what the API server holds.

  pods.py [NAME…]     all of them, or those named; needs PyYAML

A pod's status is patched through its subresource, as a kubelet writes it. A line above each case says where it comes from.
"""
import datetime, json, pathlib, subprocess, sys, tempfile, time, yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = str(ROOT / "cluster" / "cluster")
KINDS = "configmaps,secrets,deployments,statefulsets,daemonsets,replicasets,pods"
DIGEST = {letter: "sha256:" + letter * 64 for letter in "abc"}


def run(args, text="", fails=False):
    done = subprocess.run(args, input=text, capture_output=True, text=True)
    if done.returncode and not fails:
        sys.exit(f"{args}: {done.stderr}")
    return done.stdout


def ago(minutes):
    then = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(minutes=minutes)
    return then.strftime("%Y-%m-%dT%H:%M:%SZ")


class Namespace:
    def __init__(self, bin, kubeconfig, name):
        self.base = [f"{bin}/kubectl", "--kubeconfig", kubeconfig, "--namespace", name]
        self.name = name
        run(self.base + ["create", "namespace", name])
        self.until(lambda: run(self.base + ["get", "serviceaccount", "default"], fails=True))

    def kubectl(self, *args, text=""):
        return run(self.base + list(args), text)

    def apply(self, *manifests):
        self.kubectl("apply", "--filename=-", text="\n---\n".join(map(json.dumps, manifests)))

    def get(self, kind, name=None):
        got = json.loads(self.kubectl("get", kind, *([name] if name else []), "--output=json"))
        return got if name else got["items"]

    def until(self, holds):
        end = time.time() + 90
        while not holds():
            if time.time() > end:
                sys.exit(f"{self.name}: waited in vain")
            time.sleep(0.2)

    def running(self, count=2, among=lambda pod: True):
        """That many pods that the fake kubelet has started."""
        started = lambda pod: pod["status"].get("containerStatuses") and among(pod)
        found = lambda: [pod for pod in self.get("pods") if started(pod)]
        self.until(lambda: len(found()) == count)
        return sorted(found(), key=lambda pod: pod["metadata"]["name"])

    def pod_status(self, pod, **status):
        name = pod["metadata"]["name"]
        self.kubectl("patch", "pod", name, "--subresource=status", "--type=strategic", "--patch", json.dumps({"status": status}))

    def container(self, pod, **changes):
        """Writes another status of the first container."""
        statuses = pod["status"]["containerStatuses"]
        self.pod_status(pod, containerStatuses=[{**statuses[0], **changes}] + statuses[1:])

    def digest(self, pod, letter, repository="localhost/app"):
        self.container(pod, imageID=f"{repository}@{DIGEST[letter]}")

    def not_ready(self, pod, minutes, **state):
        """Not ready for so long."""
        conditions = [{"type": kind, "status": "False", "reason": "ContainersNotReady", "lastTransitionTime": ago(minutes)}
                      for kind in ("Ready", "ContainersReady")]
        statuses = pod["status"]["containerStatuses"]
        self.pod_status(pod, conditions=conditions, containerStatuses=[{**statuses[0], "ready": False, **state}])

    def objects(self):
        return yaml.safe_load(self.kubectl("get", KINDS, "--output=yaml", "--show-managed-fields"))


def config(**data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}


def workload(kind="Deployment", image="localhost/app:1", env_from=None, container={}, pod={}, template={}, **spec):
    labels = {"app": "w"}
    app = {"name": "app", "image": image, **container}
    if env_from:
        app["envFrom"] = [{"configMapRef": {"name": env_from}}]
    # One node, where a case does not say otherwise.
    pod_spec = {"terminationGracePeriodSeconds": 0, "nodeSelector": {"kubernetes.io/hostname": NODES[0]}, "containers": [app], **pod}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels, **template}, "spec": pod_spec}, **spec}
    if kind != "DaemonSet":
        spec = {"replicas": 2, **spec}
    if kind == "StatefulSet":
        spec = {"serviceName": "w", **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "w"}, "spec": spec}


def finding(type, kind="Deployment", **fields):
    return [{"subject": {"kind": kind, "name": "w"}, "baseline": "LastApplied", "findings": [{"type": type, **fields}]}]


CASES = {}


def case(play):
    CASES[play.__name__.replace("_", "-")] = play


def next_second():
    """Times in managedFields are to the second."""
    time.sleep(2.1)


# The design: a tag that moved between two starts on one node. kubernetes/kubernetes#95968: imageID's form depends on the runtime.
@case
def pods_one_tag_two_digests_by_docker(ns):
    ns.apply(workload())
    one, other = ns.running()
    ns.digest(one, "a", "docker-pullable://localhost/app")
    ns.digest(other, "b")
    return finding("MixedDigests", container="app",
                   digests=[{"digest": DIGEST["a"], "pods": 1}, {"digest": DIGEST["b"], "pods": 1}])


# The design: one container of two; the other's digests agree.
@case
def pods_one_of_two_containers_mixed(ns):
    both = [{"name": "app", "image": "localhost/app:1"}, {"name": "side", "image": "localhost/side:1"}]
    ns.apply(workload(pod={"containers": both}))
    one, other = ns.running()
    ns.digest(one, "a")
    ns.digest(other, "b")
    return finding("MixedDigests", container="app")


# The forms of imageID: the same digest, as Docker and as containerd write it.
@case
def pods_one_digest_in_two_forms_is_clean(ns):
    ns.apply(workload())
    one, other = ns.running()
    ns.digest(one, "a", "docker-pullable://localhost/app")
    ns.digest(other, "a")


# The forms of imageID: an image that was loaded, not pulled (`kind load`, `ctr import`), has a local id of its configuration.
@case
def pods_a_loaded_image_beside_a_pulled_one_is_clean(ns):
    ns.apply(workload())
    one, other = ns.running()
    ns.container(one, imageID=DIGEST["a"])
    ns.digest(other, "b")


# The forms of imageID: a node that knows the image by another repository, too, may show that one (kubernetes/kubernetes#95385).
@case
def pods_another_repository_in_the_image_id_is_clean(ns):
    ns.apply(workload())
    one, other = ns.running()
    ns.digest(one, "a", "docker.io/library/import-2026-11-30")
    ns.digest(other, "b")


# Index and platform digests, and mixed architectures, are inconclusive: two nodes, of which nothing is known
# (kubernetes/kubernetes#108689, #115199: some runtimes show the one, some the other).
@case
def pods_on_two_nodes_with_two_digests_is_clean(ns):
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": "w"}}, "topologyKey": "kubernetes.io/hostname"}]}}
    ns.apply(workload(pod={"affinity": apart, "nodeSelector": {}}))
    one, other = ns.running()
    ns.digest(one, "a")
    ns.digest(other, "b")


# The rule: terminating pods don't count.
@case
def pods_terminating_with_the_old_digest_is_clean(ns):
    ns.apply(workload(template={"finalizers": ["restamp.test/keep"]}))
    one, other = ns.running()
    ns.digest(one, "a")
    ns.digest(other, "b")
    ns.kubectl("delete", "pod", one["metadata"]["name"], "--wait=false")
    for pod in ns.running(2, lambda pod: "deletionTimestamp" not in pod["metadata"]):
        ns.digest(pod, "b")


# The rule: waiting pods don't count.
@case
def pods_waiting_with_another_digest_is_clean(ns):
    ns.apply(workload())
    one, other = ns.running()
    ns.digest(one, "a")
    ns.container(other, imageID=f"localhost/app@{DIGEST['b']}", ready=False, state={"waiting": {"reason": "CrashLoopBackOff"}})


# The rule: only pods of one revision compare; a rollout is in progress.
@case
def pods_of_two_revisions_during_a_rollout_is_clean(ns):
    strategy = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    ns.apply(workload(strategy=strategy))
    for pod in ns.running():
        ns.digest(pod, "a")
    ns.apply(workload(strategy=strategy, container={"env": [{"name": "X", "value": "1"}]},
                      template={"annotations": {"restamp.test/stuck": "true"}}))
    new = ns.running(1, lambda pod: "annotations" in pod["metadata"])[0]
    running = {"running": {"startedAt": ago(0)}}
    ns.container(new, imageID=f"localhost/app@{DIGEST['b']}", started=True, state=running)


# The rule: a pod's own image may be changed in place; another tag is not one tag with two digests.
@case
def pods_two_tags_of_one_repository_is_clean(ns):
    ns.apply(workload())
    one, other = ns.running()
    ns.kubectl("set", "image", f"pod/{one['metadata']['name']}", "app=localhost/app:2")
    ns.digest(one, "a")
    ns.digest(other, "b")


# OnDelete: pods of two revisions run side by side for as long as their owner likes.
@case
def stateful_set_on_delete_with_two_revisions_is_clean(ns):
    strategy = {"type": "OnDelete"}
    ns.apply(workload("StatefulSet", updateStrategy=strategy))
    one, other = ns.running()
    ns.apply(workload("StatefulSet", updateStrategy=strategy, container={"env": [{"name": "X", "value": "1"}]}))
    ns.until(lambda: ns.get("statefulset", "w")["status"]["updateRevision"] != one["metadata"]["labels"]["controller-revision-hash"])
    ns.kubectl("delete", "pod", "w-1")
    new = ns.running(1, lambda pod: pod["metadata"]["uid"] not in [one["metadata"]["uid"], other["metadata"]["uid"]])[0]
    ns.digest(one, "a")
    ns.digest(new, "b")


# The rule: the template pins a digest and a pod runs another one: only its own image can have been changed.
@case
def pods_one_edited_away_from_the_pinned_digest(ns):
    ns.apply(workload(image=f"localhost/app@{DIGEST['a']}"))
    one, other = ns.running()
    ns.kubectl("set", "image", f"pod/{one['metadata']['name']}", f"app=localhost/app@{DIGEST['b']}")
    ns.digest(one, "b")
    return finding("DigestMismatch", container="app", digests=[{"digest": DIGEST["b"], "pods": 1}])


# The rule: the template pins the digest of an index, and the runtime reports that of a platform's manifest.
@case
def pods_pinned_by_index_and_shown_by_platform_is_clean(ns):
    ns.apply(workload(image=f"localhost/app:1@{DIGEST['a']}"))
    for pod in ns.running():
        ns.digest(pod, "b")


# The design: paused is respected, and the report says who is outdated.
@case
def paused_deployment_older_than_its_config(ns):
    ns.apply(config(A="1"), workload(env_from="c"))
    ns.running()
    ns.kubectl("rollout", "pause", "deployment/w")
    next_second()
    ns.apply(config(A="2"))
    return finding("OutdatedPods", object="ConfigMap/c", certainty="Likely", pods=2)


# The kubelet's documentation: "a container using a ConfigMap as a subPath volume mount will not receive ConfigMap updates".
@case
def pods_older_than_a_sub_path(ns):
    mount = {"volumeMounts": [{"name": "v", "mountPath": "/etc/a.conf", "subPath": "A"}]}
    ns.apply(config(A="1"), workload(container=mount, pod={"volumes": [{"name": "v", "configMap": {"name": "c"}}]}))
    ns.running()
    next_second()
    ns.apply(config(A="2"))
    return finding("OutdatedPods", object="ConfigMap/c", certainty="Likely", pods=2)


# The rule: a restarted container has its own start time, and has read anew.
@case
def pods_whose_containers_restarted_is_clean(ns):
    ns.apply(config(A="1"), workload(env_from="c"))
    pods = ns.running()
    next_second()
    ns.apply(config(A="2"))
    next_second()
    for pod in pods:
        last = {"terminated": {"exitCode": 1, "reason": "Error"}}
        ns.container(pod, restartCount=1, lastState=last, state={"running": {"startedAt": ago(0)}})


# The design: a whole volume is in place; what is frozen comes from another config, which did not change.
@case
def pods_with_a_changed_projected_volume_is_clean(ns):
    other = {**config(B="1"), "metadata": {"name": "d"}}
    projected = {"name": "v", "projected": {"sources": [{"configMap": {"name": "c"}}]}}
    mount = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    ns.apply(config(A="1"), other, workload(env_from="d", container=mount, pod={"volumes": [projected]}))
    ns.running()
    next_second()
    ns.apply(config(A="2"))


# The rule: containers that run. An init container has done its work.
@case
def pods_whose_init_container_has_finished_is_clean(ns):
    init = {"name": "init", "image": "localhost/init:1", "envFrom": [{"configMapRef": {"name": "c"}}]}
    ns.apply(config(A="1"), workload(pod={"initContainers": [init]}))
    ns.running()
    next_second()
    ns.apply(config(A="2"))


# The rule: only managers of values count.
@case
def pods_older_than_a_label_of_their_config_is_clean(ns):
    ns.apply(config(A="1"), workload(env_from="c"))
    ns.running()
    next_second()
    ns.kubectl("label", "configmap", "c", "team=tools")


# The rule: only managers of what a container reads at its start count.
@case
def pods_older_than_another_key_by_another_manager_is_clean(ns):
    read = {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "A"}}}]}
    ns.apply(config(A="1"), workload(container=read))
    ns.running()
    next_second()
    ns.kubectl("patch", "configmap", "c", "--field-manager=injector", "--patch", '{"data": {"B": "1"}}')


# A paused Deployment whose config did not change since is as its owner wants it.
@case
def paused_deployment_is_clean(ns):
    ns.apply(config(A="1"))
    next_second()
    ns.apply(workload(env_from="c"))
    ns.running()
    ns.kubectl("rollout", "pause", "deployment/w")
    ns.kubectl("label", "pod", "--all", "seen=true")


# The rule: ignored by its annotation.
@case
def pods_older_than_an_ignored_config_is_clean(ns):
    ignored = lambda value: {**config(A=value), "metadata": {"name": "c", "annotations": {"restamp.dev/ignore": "all"}}}
    ns.apply(ignored("1"), workload(env_from="c"))
    ns.running()
    next_second()
    ns.apply(ignored("2"))


# A Deployment's controller says that it is late, and no pod shows why: a quota lets none be made.
@case
def rollout_past_its_deadline_without_a_pod(ns):
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}}
    ns.apply(quota)
    ns.until(lambda: ns.get("resourcequota", "q").get("status", {}).get("hard"))
    ns.apply(workload(progressDeadlineSeconds=1))
    late = lambda: any(c.get("reason") == "ProgressDeadlineExceeded" for c in ns.get("deployment", "w")["status"].get("conditions", []))
    ns.until(late)
    return finding("RolloutStalled")


# The same Deployment once it is mended.
@case
def rollout_past_its_deadline_and_mended_is_clean(ns):
    ns.apply(workload(progressDeadlineSeconds=1, image="localhost/bad:1"))
    late = lambda: any(c.get("reason") == "ProgressDeadlineExceeded" for c in ns.get("deployment", "w")["status"].get("conditions", []))
    ns.until(late)
    ns.apply(workload(progressDeadlineSeconds=1))
    ns.kubectl("rollout", "status", "deployment/w", "--timeout=60s")


def new_pod_of(ns, kind, image):
    """A rollout whose first pod has another image."""
    ns.apply(workload(kind))
    before = [pod["metadata"]["uid"] for pod in ns.running(1 if kind == "DaemonSet" else 2)]
    ns.apply(workload(kind, image=image))
    return ns.running(1, lambda pod: pod["metadata"]["uid"] not in before)[0]


# A StatefulSet knows no deadline: its first new pod crashes, and the others wait for it (kubernetes/kubernetes#67250).
@case
def stateful_set_stopped_by_a_crash(ns):
    pod = new_pod_of(ns, "StatefulSet", "localhost/bad:2")
    ns.not_ready(pod, 20, restartCount=8, lastState={"terminated": {"exitCode": 1, "reason": "Error"}},
                 state={"waiting": {"reason": "CrashLoopBackOff"}})
    return finding("RolloutStalled", "StatefulSet")


# The only pod is of the new revision, so all are updated; but it was never ready (kubernetes/kubernetes#88896).
@case
def stateful_set_of_one_stopped_by_its_image(ns):
    ns.apply(workload("StatefulSet", replicas=1))
    before = ns.running(1)[0]["metadata"]["uid"]
    ns.apply(workload("StatefulSet", replicas=1, image="localhost/bad:2"))
    pod = ns.running(1, lambda pod: pod["metadata"]["uid"] != before)[0]
    ns.not_ready(pod, 20, state={"waiting": {"reason": "ImagePullBackOff"}})
    return finding("RolloutStalled", "StatefulSet")


# The rule: it runs, and is not ready yet. Databases take their time.
@case
def stateful_set_slow_to_be_ready_is_clean(ns):
    pod = new_pod_of(ns, "StatefulSet", "localhost/bad:2")
    ns.not_ready(pod, 45, started=True, state={"running": {"startedAt": ago(45)}})


# The rule: what lasts for less than ten minutes may mend itself.
@case
def stateful_set_whose_image_was_just_missing_is_clean(ns):
    pod = new_pod_of(ns, "StatefulSet", "localhost/bad:2")
    ns.not_ready(pod, 3, state={"waiting": {"reason": "ImagePullBackOff"}})


# A pod that crashes long after its rollout stalls none.
@case
def stateful_set_that_crashes_without_a_rollout_is_clean(ns):
    ns.apply(workload("StatefulSet"))
    one, _ = ns.running()
    ns.kubectl("rollout", "status", "statefulset/w", "--timeout=60s")
    ns.not_ready(one, 20, restartCount=8, lastState={"terminated": {"exitCode": 1, "reason": "Error"}},
                 state={"waiting": {"reason": "CrashLoopBackOff"}})


# A DaemonSet whose first new pod can't be made: a config that it needs is gone. The other node waits for it.
@case
def daemon_set_stopped_by_a_missing_config(ns):
    both = {"nodeSelector": {}}
    ns.apply(workload("DaemonSet", pod=both))
    before = [pod["metadata"]["uid"] for pod in ns.running(2)]
    ns.apply(workload("DaemonSet", pod=both, image="localhost/bad:2"))
    pod = ns.running(1, lambda pod: pod["metadata"]["uid"] not in before)[0]
    ns.not_ready(pod, 20, state={"waiting": {"reason": "CreateContainerConfigError", "message": "configmap \"x\" not found"}})
    return finding("RolloutStalled", "DaemonSet")


def main(names):
    global NODES
    folder = tempfile.mkdtemp(prefix="restamp-cases-")
    kubeconfig = run([TOOL, "start", folder, "--kwok", "--nodes", "2"]).strip()
    bin = run([TOOL, "bin"]).strip()
    try:
        get_nodes = [f"{bin}/kubectl", "--kubeconfig", kubeconfig, "get", "nodes", "--output=json"]
        nodes = lambda: json.loads(run(get_nodes))["items"]
        while len(nodes()) < 2:
            time.sleep(0.2)
        NODES = [node["metadata"]["labels"]["kubernetes.io/hostname"] for node in nodes()]
        for name, play in CASES.items():
            if names and name not in names:
                continue
            ns = Namespace(bin, kubeconfig, f"case-{name}"[:63].rstrip("-"))
            reports = play(ns) or []
            target = ROOT / "cases" / name
            target.mkdir(exist_ok=True)
            (target / "objects.yaml").write_text(yaml.safe_dump(ns.objects(), sort_keys=True))
            (target / "expect.yaml").write_text(yaml.safe_dump({"reports": reports}, sort_keys=False))
            print(name, flush=True)
    finally:
        run([TOOL, "stop", folder])


main(sys.argv[1:])
