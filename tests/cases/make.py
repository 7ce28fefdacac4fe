#!/usr/bin/env python3
"""Plays the histories of the cases about workloads' fields on a real API server, and writes down what it then holds.

  make.py KUBECONFIG KUBECTL [CASE…]   needs PyYAML; see tests/cluster for a cluster and its kubectl

Each case is a function with what a truthful report says. Its objects come from that server, with all their managedFields;
of another manager than kubectl the writes are sent with that manager's name, as it sends them.
"""
import json, pathlib, subprocess, sys, time, yaml

ROOT = pathlib.Path(__file__).resolve().parent
KINDS = "deployments,statefulsets,daemonsets,cronjobs,jobs,configmaps,secrets,horizontalpodautoscalers"
CASES = {}


def case(baseline=None, findings=(), kind="Deployment"):
    """A case with these findings about the object `w`; with none, it is clean."""
    report = {"subject": {"kind": kind, "name": "w"}, "baseline": baseline, "findings": list(findings)}
    def register(play):
        CASES[play.__name__.replace("_", "-")] = (play, [report] if findings else [])
    return register


class Namespace:
    def __init__(self, kubeconfig, kubectl, name):
        self.base, self.name = [kubectl, "--kubeconfig", kubeconfig, "--namespace", name], name
        self("create", "namespace", name)
        self.until("serviceaccount", "default", lambda _: True)

    def __call__(self, *args, given=None):
        done = subprocess.run([*self.base, *args], input=given, capture_output=True, text=True)
        if done.returncode: raise SystemExit(f"kubectl {' '.join(args)}: {done.stderr}")
        return done.stdout

    def apply(self, *objects, flags=()):
        self("apply", *flags, "--filename=-", given="\n---\n".join(json.dumps(o) for o in objects))

    def server_side(self, manager, *objects):
        self.apply(*objects, flags=["--server-side", "--force-conflicts", f"--field-manager={manager}"])

    def patch(self, manager, patch, kind="deployment", flags=()):
        form = "json" if isinstance(patch, list) else "strategic"
        self("patch", kind, "w", f"--type={form}", f"--field-manager={manager}", *flags, "--patch", json.dumps(patch))

    def get(self, kind, name):
        return json.loads(self("get", kind, name, "--output=json", "--show-managed-fields"))

    def in_a_later_second(self):
        """managedFields tell times in whole seconds: what comes now is later than all before."""
        now = int(time.time())
        while int(time.time()) == now: time.sleep(0.02)

    def until(self, kind, name, holds):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            found = json.loads(self("get", kind, name, "--ignore-not-found", "--output=json") or "null")
            if found and holds(found): return found
            time.sleep(0.1)
        raise SystemExit(f"{kind} {name} is not as it should be: {found}")


def container(**more):
    return {"name": "app", "image": "registry.example/app:1", **more}

def workload(kind="Deployment", pod=None, spec=None, **of_container):
    labels = {"app": "w"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container(**of_container)], **(pod or {})}}
    own = {"StatefulSet": {"serviceName": "w", "replicas": 1}, "Deployment": {"replicas": 1}}.get(kind, {})
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "w"},
            "spec": {"selector": {"matchLabels": labels}, "template": template, **own, **(spec or {})}}

def cron_job(**of_container):
    pod = {"restartPolicy": "Never", "containers": [container(**of_container)]}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "w"},
            "spec": {"schedule": "0 3 * * *", "suspend": False, "jobTemplate": {"spec": {"template": {"spec": pod}}}}}

def env(**variables):
    return [{"name": name, "value": value} for name, value in variables.items()]

APP = "spec.template.spec.containers[app]"
def reverts(path, **more): return {"type": "RevertsOnApply", "path": path, **more}
def undeclared(path, **more): return {"type": "UndeclaredField", "path": path, **more}


# Design: images revert whoever else changed them; here an image updater.
@case("LastApplied", [reverts(f"{APP}.image", declared="registry.example/app:1", live="registry.example/app:2", manager="keel")])
def workload_image_set_by_a_controller(ns):
    ns.apply(workload())
    ns("set", "image", "deployment/w", "app=registry.example/app:2", "--field-manager=keel")

# Design: `rollout undo` is a hand, called `kubectl`; the manifest still has the newer template.
@case("LastApplied", [reverts(f"{APP}.image", declared="registry.example/app:2", live="registry.example/app:1", manager="kubectl")])
def workload_undone_by_hand(ns):
    ns.apply(workload())
    ns.until("deployment", "w", lambda w: w["metadata"]["annotations"].get("deployment.kubernetes.io/revision") == "1")
    ns.apply(workload(image="registry.example/app:2"))
    ns.until("deployment", "w", lambda w: w["metadata"]["annotations"].get("deployment.kubernetes.io/revision") == "2")
    ns("rollout", "undo", "deployment/w")

# Issue 5: a container, an init container and a volume that a hand added.
@case("LastApplied", [undeclared("spec.template.spec.containers[debug]", manager="kubectl-edit"),
                      undeclared("spec.template.spec.initContainers[first]"), undeclared("spec.template.spec.volumes[tmp]")])
def workload_sidecar_added_by_edit(ns):
    ns.apply(workload())
    mount = {"name": "debug", "image": "registry.example/debug:1", "env": env(A="1"), "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}]}
    first = {"name": "first", "image": "registry.example/first:1"}
    ns.patch("kubectl-edit", {"spec": {"template": {"spec": {"containers": [mount], "initContainers": [first], "volumes": [{"name": "tmp", "emptyDir": {}}]}}}})

# Design: the path goes through the job's template; a CronJob that was suspended by hand starts again with the next apply.
@case("LastApplied", [reverts("spec.suspend", manager="kubectl-patch"),
                      reverts("spec.jobTemplate.spec.template.spec.containers[app].image", live="registry.example/app:2")], kind="CronJob")
def cron_job_changed_by_hand(ns):
    ns.apply(cron_job())
    ns("set", "image", "cronjob/w", "app=registry.example/app:2")
    ns.patch("kubectl-patch", {"spec": {"suspend": True}}, kind="cronjob")

# Whoever takes out what another one owns leaves no trace in managedFields; an admission policy may do so at each apply.
@case()
def workload_variable_removed_without_a_trace_is_clean(ns):
    ns.apply(workload(env=env(A="1", B="2")))
    ns("set", "env", "deployment/w", "A-")

# Issue 5: `envFrom` has no merge keys, and a list that no manifest declares stays as the hand left it.
@case("LastApplied", [undeclared(f"{APP}.envFrom[Secret/s:P_]", manager="kubectl-patch"), {"type": "MissingReference", "object": "Secret/s"}])
def workload_env_from_added_by_hand(ns):
    ns.apply(workload())
    ns("create", "configmap", "here", "--from-literal=A=1")
    ns("create", "secret", "generic", "other", "--from-literal=A=1")
    source = {"secretRef": {"name": "s"}, "prefix": "P_"}
    ns.patch("kubectl-patch", {"spec": {"template": {"spec": {"containers": [{"name": "app", "envFrom": [source]}]}}}})

# Design: values are shown for resources; equal ones beside it are none.
@case("LastApplied", [reverts(f"{APP}.resources.limits.memory", declared="1Gi", live="2Gi", manager="kubectl-set")], kind="StatefulSet")
def stateful_set_limit_raised_by_hand(ns):
    ns.apply(workload("StatefulSet", resources={"limits": {"memory": "1Gi", "cpu": "0.5"}, "requests": {"memory": "512Mi"}}))
    ns("set", "resources", "statefulset/w", "--limits=memory=2Gi,cpu=500m", "--requests=memory=512Mi")

# `kubectl set env` with a value replaces a reference: the union of a variable's sources.
@case("LastApplied", [reverts(f"{APP}.env[A].valueFrom", manager="kubectl-set")], kind="DaemonSet")
def daemon_set_reference_replaced_by_a_value(ns):
    ns("create", "configmap", "c", "--from-literal=A=1")
    ns.apply(workload("DaemonSet", env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "A"}}}]))
    ns("set", "env", "daemonset/w", "A=2")

# Design: without an annotation, what an applier owns by Apply is declared, and what a hand owns beside it is not.
@case("ManagedFields", [undeclared(f"{APP}.env[EXTRA]", manager="kubectl-set")])
def workload_of_argo_with_a_variable_by_hand(ns):
    ns.server_side("argocd-controller", workload(env=env(A="1")))
    ns("set", "env", "deployment/w", "EXTRA=1", "A=2")

# Issue 5: with a HorizontalPodAutoscaler a declared number of pods is a note. The real controller scales to its minimum.
@case()
def workload_scaled_by_an_autoscaler(ns):
    ns.apply(workload())
    ns("autoscale", "deployment", "w", "--min=3", "--max=5", "--cpu=80%")
    ns.until("deployment", "w", lambda w: w["spec"]["replicas"] == 3)

# The same by a controller of its own through the subresource, as KEDA or a scheduler of nights does.
@case()
def workload_scaled_by_a_controller(ns):
    ns.apply(workload())
    ns.patch("night-scaler", {"spec": {"replicas": 0}}, flags=["--subresource=scale"])

def mutate(ns, expression, condition="true", probe=None):
    """An admission policy of the API server that changes the Deployments of this namespace."""
    meta, match = {"name": ns.name}, {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": ns.name}}, "resourceRules": [
        {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["deployments"]}]}
    api = "admissionregistration.k8s.io/v1"
    form = "jsonPatch" if expression.startswith("[") else "applyConfiguration"
    spec = {"failurePolicy": "Fail", "reinvocationPolicy": "Never", "matchConstraints": match,
            "matchConditions": [{"name": "applies", "expression": condition}],
            "mutations": [{"patchType": {"jsonPatch": "JSONPatch", "applyConfiguration": "ApplyConfiguration"}[form], form: {"expression": expression}}]}
    binding = {"policyName": ns.name}
    ns.apply({"apiVersion": api, "kind": "MutatingAdmissionPolicy", "metadata": meta, "spec": spec},
             {"apiVersion": api, "kind": "MutatingAdmissionPolicyBinding", "metadata": meta, "spec": binding})
    def mutated():
        other = probe or workload(); other["metadata"]["name"] = "probe"
        out = ns("create", "--dry-run=server", "--filename=-", "--output=json", given=json.dumps(other))
        return "mutated" in out
    end = time.monotonic() + 60
    while not mutated():
        if time.monotonic() > end: raise SystemExit("the admission policy does not work")
        time.sleep(0.1)

# Issue 5: sidecar injectors change what the applier sends, and managedFields carry the applier's own name.
@case()
def workload_with_a_sidecar_injected_at_admission(ns):
    mutate(ns, 'Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: ['
               'Object.spec.template.spec.containers{name: "app", env: [Object.spec.template.spec.containers.env{name: "INJECTED", value: "1"}]},'
               'Object.spec.template.spec.containers{name: "mutated", image: "registry.example/proxy:1"}]}}}}')
    ns.apply(workload(env=env(A="1")))

# The same for policies that rewrite registries: another image than the declared one, by the applier's own name.
@case()
def workload_whose_image_admission_rewrites(ns):
    mutate(ns, 'Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: ['
               'Object.spec.template.spec.containers{name: "app", image: "mirror.example/mutated:1"}]}}}}')
    ns.apply(workload())

# Design: what a controller put there is not drift, also where it updates the Deployment itself.
@case()
def workload_with_a_sidecar_of_a_controller(ns):
    ns.apply(workload())
    ns.patch("injector", {"spec": {"template": {"spec": {"containers": [{"name": "proxy", "image": "registry.example/proxy:1", "env": env(A="1")}]}}}})

# Design: neither `rollout restart` nor our own stamp is drift.
@case()
def workload_restarted_and_stamped(ns):
    ns.apply(workload())
    ns("rollout", "restart", "deployment/w")
    stamp = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w"},
             "spec": {"template": {"metadata": {"annotations": {"restamp.dev/config-hash": "v1.k.d.1"}}}}}
    ns.server_side("restamp", stamp)

# The everyday hotfix: `set image`, and then the manifest follows.
@case()
def workload_set_image_then_applied(ns):
    ns.apply(workload())
    ns("set", "image", "deployment/w", "app=registry.example/app:2")
    ns.apply(workload(image="registry.example/app:2"))

# Design: an annotation is a leftover once somebody else applies server-side.
@case()
def workload_taken_over_by_argo(ns):
    ns.apply(workload(env=env(A="1")))
    ns.server_side("argocd-controller", workload(image="registry.example/app:2", env=env(A="2", B="1")))

# Design: Flux applies server-side, and leaves the number of pods to an autoscaler.
@case()
def workload_of_flux_scaled_by_a_controller(ns):
    applied = workload(); del applied["spec"]["replicas"]
    ns.server_side("kustomize-controller", applied)
    ns.patch("kube-controller-manager", {"spec": {"replicas": 4}}, flags=["--subresource=scale"])

# Issue 5: ints and strings, and the defaults that the API server adds to ports, probes, volumes and their items.
@case()
def workload_with_defaults_everywhere(ns):
    ns("create", "configmap", "c", "--from-literal=A=1")
    probe = {"httpGet": {"path": "/", "port": "http"}}
    ns.apply(workload(
        ports=[{"name": "http", "containerPort": 8080}, {"containerPort": 8080, "protocol": "UDP"}],
        readinessProbe=probe, livenessProbe={"tcpSocket": {"port": 8080}}, startupProbe={"exec": {"command": ["true"]}},
        env=[{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
             {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1000m"}}}],
        envFrom=[{"configMapRef": {"name": "c"}}], volumeMounts=[{"name": "v", "mountPath": "/v", "readOnly": False}],
        pod={"volumes": [{"name": "v", "projected": {"sources": [{"configMap": {"name": "c"}}]}}, {"name": "e", "emptyDir": {"sizeLimit": "1024Mi"}},
                         {"name": "h", "hostPath": {"path": "/h"}}],
             "tolerations": [{"key": "k", "operator": "Exists"}], "hostNetwork": False, "serviceAccount": "default",
             "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway",
                                            "labelSelector": {"matchLabels": {"app": "w"}}}]},
        spec={"strategy": {"rollingUpdate": {"maxSurge": "50%", "maxUnavailable": 0}}, "minReadySeconds": 0, "paused": False}))
    ns.patch("kubectl-edit", {"spec": {"revisionHistoryLimit": 3}})

# Issue 5: nulls are not drift; generated manifests hold them, empty lists and zero values.
@case()
def workload_with_nulls(ns):
    manifest = workload(args=[], env=[{"name": "EMPTY", "value": ""}, {"name": "NULL", "value": None}], resources={}, securityContext=None,
                        imagePullPolicy="", livenessProbe=None, volumeMounts=None, tty=False)
    manifest["spec"].update({"replicas": None, "strategy": {}, "revisionHistoryLimit": None})
    manifest["spec"]["template"]["metadata"].update({"creationTimestamp": None, "annotations": {}})
    manifest["status"] = {}
    ns.apply(manifest)
    ns("label", "deployment/w", "by=hand")

# Lists are compared by their keys, not by their order; kubectl merges a new order into the old one.
@case()
def workload_with_variables_in_another_order(ns):
    ns.apply(workload(env=env(A="1", B="2", C="3")))
    ns.apply(workload(env=env(C="3", A="1", B="2")))
    ns.patch("kubectl-edit", [{"op": "replace", "path": "/spec/template/spec/containers/0/env", "value": env(B="2", C="3", A="1")}])

# Controllers copy their parent's annotations onto children, the last-applied one too.
@case()
def workload_with_its_parents_annotation(ns):
    parent = workload(image="registry.example/app:9"); parent["metadata"] = {"name": "parent", "namespace": ns.name}
    child = workload()
    child["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(parent)}
    # Not `kubectl create`, which would write the annotation anew.
    path = f"/apis/apps/v1/namespaces/{ns.name}/deployments?fieldManager=operator"
    ns("create", "--raw", path, "--filename=-", given=json.dumps(child))
    ns("set", "image", "deployment/w", "app=registry.example/app:2")

# Helm updates: without its release nothing says what is declared.
@case()
def workload_of_helm_without_its_release(ns):
    chart = workload()
    chart["metadata"].update({"annotations": {"meta.helm.sh/release-name": "r", "meta.helm.sh/release-namespace": ns.name},
                              "labels": {"app.kubernetes.io/managed-by": "Helm"}})
    ns("create", "--field-manager=helm", "--filename=-", given=json.dumps(chart))
    ns("set", "image", "deployment/w", "app=registry.example/app:2")

# Undeclared labels and annotations are everybody's, on the object and on its pods.
@case()
def workload_labelled_by_edit(ns):
    ns.apply(workload())
    ns("label", "deployment/w", "team=a")
    ns("annotate", "deployment/w", "note=b")
    ns.patch("kubectl-edit", {"spec": {"template": {"metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}}}}})

# Where managedFields are hidden nobody knows who wrote what.
@case()
def workload_without_managed_fields(ns):
    ns.apply(workload())
    ns("set", "image", "deployment/w", "app=registry.example/app:2")
    ns.hide_managed_fields = True

# A Job's template can't change; what its controller adds to it is not declared by anybody.
@case()
def job_as_it_was_applied(ns):
    pod = {"restartPolicy": "Never", "containers": [container(resources={"requests": {"cpu": "0.1"}})]}
    ns.apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "w"}, "spec": {"template": {"spec": pod}, "backoffLimit": 0}})
    ns.patch("job-queue", {"spec": {"parallelism": 0}}, kind="job")

# A field whose feature is off, or which another version of the API server does not know, is dropped on the way in.
@case()
def workload_with_a_field_that_the_server_drops(ns):
    manifest = workload()
    manifest["spec"]["template"]["spec"]["containers"][0]["fieldOfTomorrow"] = {"a": 1}
    ns.apply(manifest, flags=["--validate=false"])
    ns.patch("kubectl-edit", {"spec": {"template": {"spec": {"containers": [{"name": "app", "imagePullPolicy": "Always"}]}}}})

# Old versions of kubectl call their apply `kubectl`, as `rollout undo` is called; an admission policy changed what it sent.
@case()
def workload_applied_by_an_old_kubectl(ns):
    mutate(ns, 'Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: ['
               'Object.spec.template.spec.containers{name: "app", image: "mirror.example/mutated:1"}]}}}}')
    ns.apply(workload(), flags=["--field-manager=kubectl"])

# `kubectl set env A=` empties a declared variable; what it adds beside is the only trace of it.
@case("LastApplied", [reverts(f"{APP}.env[A].value"), reverts(f"{APP}.env[R].valueFrom"), undeclared(f"{APP}.env[C]", manager="kubectl-set")])
def workload_variable_emptied_by_hand(ns):
    ns("create", "configmap", "c", "--from-literal=R=1")
    reference = {"name": "R", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "R"}}}
    ns.apply(workload(env=[*env(A="1", B="2"), reference]))
    ns.in_a_later_second()
    ns("set", "env", "deployment/w", "A=", "R=", "C=3")

# Without it, nothing tells the command from an admission policy.
@case()
def workload_variable_emptied_without_a_trace_is_clean(ns):
    ns.apply(workload(env=env(A="1", B="2")))
    ns.in_a_later_second()
    ns("set", "env", "deployment/w", "A=")

# A volume holds one source, and `emptyDir: {}` is one: the next apply brings it back.
@case("LastApplied", [reverts("spec.template.spec.volumes[v].emptyDir", manager="kubectl-edit")])
def workload_empty_volume_replaced_by_hand(ns):
    ns.apply(workload(pod={"volumes": [{"name": "v", "emptyDir": {}}]}))
    other = {"name": "v", "hostPath": {"path": "/h"}}
    ns.patch("kubectl-edit", [{"op": "replace", "path": "/spec/template/spec/volumes/0", "value": other}])

# A probe does one thing: the next apply brings the declared one back, and fails on the other.
@case("LastApplied", [reverts(f"{APP}.livenessProbe.httpGet", manager="kubectl-edit")])
def workload_probe_replaced_by_hand(ns):
    ns.apply(workload(livenessProbe={"httpGet": {"path": "/", "port": 80}}))
    other = {"tcpSocket": {"port": 80}}
    ns.patch("kubectl-edit", [{"op": "replace", "path": "/spec/template/spec/containers/0/livenessProbe", "value": other}])

def hardened():
    return workload(command=["app"], livenessProbe={"tcpSocket": {"port": 80}}, resources={"limits": {"memory": "1Gi"}},
                    securityContext={"runAsNonRoot": True, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}},
                    pod={"automountServiceAccountToken": False, "hostAliases": [{"ip": "192.0.2.1", "hostnames": ["h"]}],
                         "nodeSelector": {"disk": "fast"}, "tolerations": [{"operator": "Exists"}]})

def softened(*more):
    gone = ["automountServiceAccountToken", "hostAliases", "nodeSelector", "tolerations", "containers/0/command",
            "containers/0/livenessProbe", "containers/0/resources/limits", "containers/0/securityContext/runAsNonRoot",
            "containers/0/securityContext/capabilities"]
    return [*({"op": "remove", "path": f"/spec/template/spec/{path}"} for path in gone), *more]

# What a hand took out or loosened in one edit, beside what it set.
@case("LastApplied", [
    reverts(f"{APP}.securityContext.readOnlyRootFilesystem", manager="kubectl-edit"),
    *(reverts(f"{APP}.{path}") for path in ["command", "livenessProbe", "resources.limits", "securityContext.capabilities", "securityContext.runAsNonRoot"]),
    *(reverts(f"spec.template.spec.{path}") for path in ["automountServiceAccountToken", "hostAliases[192.0.2.1]", "nodeSelector", "tolerations"])])
def workload_softened_by_hand(ns):
    ns.apply(hardened())
    ns.in_a_later_second()
    writable = {"op": "replace", "path": "/spec/template/spec/containers/0/securityContext/readOnlyRootFilesystem", "value": False}
    ns.patch("kubectl-edit", softened(writable))

# The same without anything set: nothing tells it from an admission policy.
@case()
def workload_softened_without_a_trace_is_clean(ns):
    ns.apply(hardened())
    ns.in_a_later_second()
    ns.patch("kubectl-edit", softened())

# Mended by the next apply, which keeps what the hand added beside.
@case("LastApplied", [undeclared(f"{APP}.env[C]", manager="kubectl-edit")])
def workload_softened_then_applied(ns):
    ns.apply(hardened())
    ns.in_a_later_second()
    ns.patch("kubectl-edit", softened({"op": "add", "path": "/spec/template/spec/containers/0/env", "value": env(C="3")}))
    ns.in_a_later_second()
    ns.apply(hardened())

# An admission policy takes host aliases out at each write; `kubectl set image` takes out nothing.
@case("LastApplied", [reverts(f"{APP}.image", manager="kubectl-set")])
def workload_stripped_at_admission_then_set_image(ns):
    mutate(ns, '[JSONPatch{op: "remove", path: "/spec/template/spec/hostAliases"}, '
               'JSONPatch{op: "add", path: "/spec/template/metadata/labels/mutated", value: "yes"}]',
           condition="has(object.spec.template.spec.hostAliases)", probe=hardened())
    ns.apply(hardened())
    ns.in_a_later_second()
    ns("set", "image", "deployment/w", "app=registry.example/app:2")

# A field whose feature may be off is never missed, also where a hand wrote since: which server it was is not known.
@case("LastApplied", [reverts(f"{APP}.image", manager="kubectl-edit")])
def workload_gated_fields_removed_by_hand(ns):
    ns.apply(workload(resizePolicy=[{"resourceName": "cpu", "restartPolicy": "RestartContainer"}], tty=False, args=[],
                      startupProbe=None, securityContext={"privileged": False}))
    ns.in_a_later_second()
    ns.patch("kubectl-edit", [{"op": "remove", "path": "/spec/template/spec/containers/0/resizePolicy"},
                              {"op": "remove", "path": "/spec/template/spec/containers/0/securityContext"},
                              {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "registry.example/app:2"}])

# A hand pulled from the mirror before admission did: each apply sends the other name, and the policy makes it the same again.
@case()
def workload_image_of_a_hand_that_admission_keeps(ns):
    ns.apply(workload())
    ns("set", "image", "deployment/w", "app=mirror.example/mutated:1")
    mutate(ns, 'Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: ['
               'Object.spec.template.spec.containers{name: "app", image: "mirror.example/mutated:1"}]}}}}')
    ns.in_a_later_second()
    ns.apply(workload(env=env(A="1")))

# `create --save-config` sends the nulls, and the API server makes empty values of them; `apply` removes only those of `data`.
@case(kind="Secret")
def secret_created_with_nulls_is_clean(ns):
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "w"}, "data": {"D": None}, "stringData": {"A": "1", "N": None}}
    ns("create", "--save-config", "--filename=-", given=json.dumps(secret))
    ns.apply(secret)

# `kubectl apply` sends no nulls, and a null in `stringData` removes nothing that was there.
@case("LastApplied", [{"type": "StaleKey", "key": "OLD", "manager": "kubectl-client-side-apply"}], kind="Secret")
def secret_with_a_null_for_a_former_key(ns):
    def secret(**data): return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "w"}, "stringData": data}
    ns.apply(secret(A="1", OLD="1", N=None))
    ns.apply(secret(A="1", OLD=None, N=None))

# The same of a ConfigMap, whose nulls are gone with the next apply.
@case(kind="ConfigMap")
def configmap_created_with_nulls_is_clean(ns):
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "w"}, "data": {"A": "1", "N": None}}
    ns("create", "--save-config", "--filename=-", given=json.dumps(config))


def write(name, ns, reports):
    flags = [] if getattr(ns, "hide_managed_fields", False) else ["--show-managed-fields"]
    found = yaml.safe_load(ns("get", KINDS, "--output=yaml", *flags))
    found["items"] = [item for item in found["items"] if item["metadata"]["name"] != "kube-root-ca.crt"]
    folder = ROOT / name
    folder.mkdir(exist_ok=True)
    (folder / "objects.yaml").write_text(yaml.safe_dump(found, sort_keys=False))
    (folder / "expect.yaml").write_text(yaml.safe_dump({"reports": reports}, sort_keys=False))


def main(kubeconfig, kubectl, *names):
    run = f"{time.time_ns() // 1_000_000_000 % 1_000_000}"
    for name, (play, reports) in CASES.items():
        if names and name not in names: continue
        ns = Namespace(kubeconfig, kubectl, f"{name[:50]}-{run}")
        play(ns)
        write(name, ns, reports)
        print(name)


if __name__ == "__main__":
    main(*sys.argv[1:])
