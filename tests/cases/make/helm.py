#!/usr/bin/env python3
"""Plays the histories of the cases about Helm releases with the real helm, and writes down what the API server then holds.

  helm.py KUBECONFIG KUBECTL HELM [CASE…]   needs PyYAML; helm is `go build helm.sh/helm/v3/cmd/helm`, and of v4 for the
                                            cases helm4-…; those of the other one are left out

Each chart is made here; the release Secret is the one that helm wrote. A line above each case says where it comes from.
"""
import base64, gzip, json, pathlib, subprocess, sys, tempfile, time, yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import make

CASES = {}
APP = make.APP


def case(*reports):
    """A case with these reports; with none, it is clean."""
    def register(play):
        CASES[play.__name__.replace("_", "-")] = (play, list(reports))
    return register

def report(kind, *findings, name="w"):
    return {"subject": {"kind": kind, "name": name}, "baseline": "HelmRelease", "findings": list(findings)}


class Namespace(make.Namespace):
    helm = None

    def release(self, command, *objects, flags=(), fails=False, name="web"):
        """helm install or upgrade, with a chart of these templates: objects, or text as it stands."""
        with tempfile.TemporaryDirectory() as folder:
            chart = pathlib.Path(folder)
            (chart / "templates").mkdir()
            (chart / "Chart.yaml").write_text("apiVersion: v2\nname: web\nversion: 1.0.0\n")
            for number, content in enumerate(objects):
                text = content if isinstance(content, str) else yaml.safe_dump(content)
                (chart / "templates" / f"{number}.yaml").write_text(text)
            self.run_helm(command, name, str(chart), *flags, fails=fails)

    def run_helm(self, *args, fails=False):
        done = subprocess.run([self.helm, "--kubeconfig", self.base[2], "--namespace", self.name, *args], capture_output=True, text=True)
        if bool(done.returncode) != fails: raise SystemExit(f"helm {' '.join(args)}: {done.stdout} {done.stderr}")


def secret(**more):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "w"}, **more}

def config(**data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "w"}, "data": data}


# Issue 5, and the heart of restamp: helm merges three ways, so that what it sent in `stringData` is never pruned.
@case(report("Secret", {"type": "StaleKey", "key": "OLD", "cause": "LeftByApply", "manager": "helm"}))
def helm_secret_stringdata_key_removed(ns):
    ns.release("install", secret(stringData={"A": "1", "OLD": "2"}))
    ns.release("upgrade", secret(stringData={"A": "1"}))

# The same by going back to a revision that did not have the key.
@case(report("Secret", {"type": "StaleKey", "key": "NEW", "cause": "LeftByApply", "manager": "helm"}))
def helm_secret_rolled_back_with_stringdata(ns):
    ns.release("install", secret(stringData={"A": "1"}))
    ns.release("upgrade", secret(stringData={"A": "1", "NEW": "2"}))
    ns.run_helm("rollback", "web", "1")

# Design: a key that a hand added; helm leaves it alone, also at the next upgrade.
@case(report("Secret", {"type": "UndeclaredKey", "key": "EXTRA", "manager": "kubectl-patch"}))
def helm_secret_key_added_by_hand(ns):
    ns.release("install", secret(stringData={"A": "1"}))
    ns.patch("kubectl-patch", {"stringData": {"EXTRA": "2"}}, kind="secret")
    ns.release("upgrade", secret(stringData={"A": "3"}))

# Design: what the next upgrade reverts.
@case(report("ConfigMap", {"type": "ValueDiffers", "key": "A", "manager": "kubectl-edit"}, {"type": "MissingKey", "key": "GONE"}))
def helm_config_changed_by_hand(ns):
    ns.release("install", config(A="1", B="2", GONE="3"))
    ns.patch("kubectl-edit", {"data": {"A": "9", "GONE": None}}, kind="configmap")

# Issue 5: the classic, over a chart's image; a variable that a hand added stays for ever.
@case(report("Deployment",
             make.reverts(f"{APP}.image", declared="registry.example/app:1", live="registry.example/app:2", manager="kubectl-set"),
             make.undeclared(f"{APP}.env[EXTRA]", manager="kubectl-set")))
def helm_workload_changed_by_hand(ns):
    ns.release("install", make.workload(env=make.env(A="1")))
    ns("set", "image", "deployment/w", "app=registry.example/app:2")
    ns("set", "env", "deployment/w", "EXTRA=1")

# `kubectl scale` over a number of pods that the chart sets, in a document that names its namespace.
@case(report("StatefulSet", make.reverts("spec.replicas", declared="1", live="3", manager="kubectl")))
def helm_stateful_set_scaled_by_hand(ns):
    chart = make.workload("StatefulSet")
    chart["metadata"]["namespace"] = ns.name
    ns.release("install", chart)
    ns("scale", "statefulset/w", "--replicas=3")

# The other half of the three-way merge: `data` is pruned.
@case()
def helm_data_keys_removed_are_pruned(ns):
    ns.release("install", secret(data={"A": "MQ==", "OLD": "Mg=="}), config(A="1", OLD="2"))
    ns.release("upgrade", secret(data={"A": "MQ=="}), config(A="1"))

# What charts write: YAML of version 1.1, quantities, nulls, empty values, comments, several documents in one template, random values.
@case()
def helm_upgrades_of_all_sorts_are_clean(ns):
    chart = """# about
apiVersion: v1
kind: Secret
metadata: {name: w}
stringData:
  password: {{ randAlphaNum 20 | quote }}
  empty: ""
  nothing:
---
apiVersion: v1
kind: ConfigMap
metadata: {name: w}
data:
  revision: {{ .Release.Revision | quote }}
  number: "0644"
  text: |
    ---x
    {{ .Release.Name }}
binaryData: {bin: AAE=}
---
{{- if false }}
kind: Nothing
{{- end }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: w}
spec:
  replicas:
  selector: {matchLabels: {app: w}}
  template:
    metadata: {labels: {app: w}, annotations: {}}
    spec:
      containers:
      - name: app
        image: "registry.example/app:{{ .Release.Revision }}"
        args: []
        env: [{name: A, value: ""}]
        envFrom: [{secretRef: {name: w}}, {configMapRef: {name: w}}]
        resources: {limits: {cpu: 0.5, memory: 1024Mi}, requests: {cpu: 500m}}
        ports: [{containerPort: 8080}]
        volumeMounts: [{name: v, mountPath: /v}]
      volumes: [{name: v, secret: {secretName: w, defaultMode: 0400}}]
"""
    ns.release("install", chart)
    ns.release("upgrade", chart)
    ns("rollout", "restart", "deployment/w")

# The everyday hotfix: `set image`, and then the chart follows.
@case()
def helm_hotfix_then_upgrade_is_clean(ns):
    ns.release("install", make.workload())
    ns("set", "image", "deployment/w", "app=registry.example/app:2")
    ns.release("upgrade", make.workload(image="registry.example/app:2"))

# A failed upgrade leaves objects of two revisions; which of them is meant, nobody knows until the next one.
@case()
def helm_failed_upgrade_is_clean(ns):
    ns.release("install", secret(stringData={"A": "1"}), make.workload())
    broken = make.workload(image="")
    ns.release("upgrade", secret(stringData={"A": "2", "NEW": "3"}), broken, fails=True)
    ns.patch("kubectl-patch", {"stringData": {"A": "4"}}, kind="secret")

# Controllers fill in what a chart leaves empty, inject what it does not have, and scale.
@case()
def helm_objects_with_controllers_are_clean(ns):
    ns.release("install", secret(stringData={"token": "", "A": "1"}), config(A="1"), make.workload())
    ns.patch("token-controller", {"stringData": {"token": "t", "ca.crt": "c"}}, kind="secret")
    ns.patch("injector", {"data": {"ca.crt": "c", "A": "2"}}, kind="configmap")
    ns.patch("kube-controller-manager", {"spec": {"replicas": 3}}, flags=["--subresource=scale"])

# A copy by hand of an object names the release that it was copied from, and is not in that one's manifest.
@case()
def helm_object_copied_from_a_release_is_clean(ns):
    ns.release("install", secret(stringData={"A": "1"}))
    copy = ns.get("secret", "w")
    copy["metadata"] = {"name": "copy", **{field: copy["metadata"][field] for field in ("labels", "annotations")}}
    ns("create", "--filename=-", "--field-manager=kubectl-create", given=json.dumps(copy))
    ns("patch", "secret", "copy", "--field-manager=kubectl-patch", "--patch", json.dumps({"stringData": {"B": "2"}}))

# A release that a newer Helm wrote in a way which nobody here can read, or that was cut: nothing is claimed.
@case()
def helm_broken_release_is_clean(ns):
    ns.release("install", secret(stringData={"A": "1"}), make.workload())
    record = "sh.helm.release.v1.web.v1"
    cut = base64.b64encode(base64.b64encode(gzip.compress(b'{"manifest": "---\\napiVersion: v1')[:30])).decode()
    ns("patch", "secret", record, "--type=merge", "--patch", json.dumps({"data": {"release": cut}}))
    ns.patch("kubectl-patch", {"stringData": {"A": "2", "B": "3"}}, kind="secret")
    ns("set", "image", "deployment/w", "app=registry.example/app:2")

# Helm 4 applies server-side. What came by `stringData` has no owner in `data`, so that nobody prunes it there either.
@case(report("Secret", {"type": "StaleKey", "key": "OLD", "cause": "Unowned"}))
def helm4_secret_stringdata_key_removed(ns):
    ns.release("install", secret(stringData={"A": "1", "OLD": "2"}, data={"B": "Mg=="}))
    ns.release("upgrade", secret(stringData={"A": "1"}, data={"B": "Mg=="}))

# The same rules as for Helm 3: a hand's key stays.
@case(report("Secret", {"type": "UndeclaredKey", "key": "EXTRA", "manager": "kubectl-patch"}))
def helm4_secret_key_added_by_hand(ns):
    ns.release("install", secret(data={"A": "MQ=="}))
    ns.patch("kubectl-patch", {"stringData": {"EXTRA": "2"}}, kind="secret")
    ns.release("upgrade", secret(data={"A": "Mw=="}))

# And what a hand changed or removed is not as it is declared.
@case(report("ConfigMap", {"type": "ValueDiffers", "key": "A", "manager": "kubectl-edit"}, {"type": "MissingKey", "key": "GONE"}))
def helm4_config_changed_by_hand(ns):
    ns.release("install", config(A="1", B="2", GONE="3"))
    ns.patch("kubectl-edit", {"data": {"A": "9", "GONE": None}}, kind="configmap")

@case(report("Deployment",
             make.reverts(f"{APP}.image", declared="registry.example/app:1", live="registry.example/app:2", manager="kubectl-set"),
             make.undeclared(f"{APP}.env[EXTRA]", manager="kubectl-set")))
def helm4_workload_changed_by_hand(ns):
    ns.release("install", make.workload(env=make.env(A="1")))
    ns("set", "image", "deployment/w", "app=registry.example/app:2")
    ns("set", "env", "deployment/w", "EXTRA=1")

# Server-side apply prunes what its applier owns alone: keys of `data`, variables, whole containers.
@case()
def helm4_data_keys_removed_are_pruned(ns):
    ns.release("install", secret(data={"A": "MQ==", "OLD": "Mg=="}), config(A="1", OLD="2"), make.workload(env=make.env(A="1", OLD="2")))
    ns.release("upgrade", secret(data={"A": "MQ=="}), config(A="1"), make.workload(env=make.env(A="1")))

@case()
def helm4_hotfix_then_upgrade_is_clean(ns):
    ns.release("install", make.workload())
    ns("set", "image", "deployment/w", "app=registry.example/app:2")
    ns.release("upgrade", make.workload(image="registry.example/app:2"))

# A release of Helm 3 stays client-side until somebody asks for more; then its fields move to the applier, and are pruned.
@case()
def helm4_release_moved_to_server_side_apply_is_clean(ns):
    ns.release("install", secret(stringData={"A": "1", "OLD": "2"}), make.workload(env=make.env(A="1", OLD="2")), flags=["--server-side=false"])
    ns.release("upgrade", secret(stringData={"A": "1"}), make.workload(env=make.env(A="1")), flags=["--server-side=true"])

# A failed upgrade by a conflict with a hand: of its release nothing is claimed.
@case()
def helm4_upgrade_in_conflict_with_a_hand_is_clean(ns):
    ns.release("install", make.workload(), config(A="1"))
    ns("set", "image", "deployment/w", "app=registry.example/app:2")
    ns.release("upgrade", make.workload(image="registry.example/app:3"), config(A="1"), fails=True)


def main(kubeconfig, kubectl, helm, *names):
    Namespace.helm = helm
    version = subprocess.run([helm, "version", "--template={{.Version}}"], capture_output=True, text=True, check=True).stdout
    is_4 = version.startswith("v4")
    run = f"{time.time_ns() // 1_000_000_000 % 1_000_000}"
    for name, (play, reports) in CASES.items():
        if names and name not in names or name.startswith("helm4-") != is_4: continue
        ns = Namespace(kubeconfig, kubectl, f"{name[:50]}-{run}")
        play(ns)
        make.write(name, ns, reports)
        print(name, flush=True)


main(*sys.argv[1:])
