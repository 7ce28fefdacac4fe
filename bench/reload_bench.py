#!/usr/bin/env python3
"""Drives one reload controller against one API server and measures what its users feel.

Every scenario uses the widely used `reloader.stakater.com/auto` annotation, so that any controller
that honours it can be measured with the same objects, the same server and the same clock.

  reload_bench.py --kubeconfig K --name NAME --cmd 'controller --flags' [--workloads 200] [--ballast 2000x20]
"""
import argparse, asyncio, base64, hashlib, json, os, shlex, signal, ssl, subprocess, tempfile, time
import aiohttp, yaml

NS = "reload-bench"; QUIET = 8.0


class Api:
    def __init__(self, kubeconfig):
        cfg = yaml.safe_load(open(kubeconfig))
        self.base = cfg["clusters"][0]["cluster"]["server"]
        user = cfg["users"][0]["user"]
        ctx = ssl.create_default_context(); ctx.check_hostname = False; ctx.verify_mode = ssl.CERT_NONE
        if "client-certificate" in user:
            ctx.load_cert_chain(user["client-certificate"], user["client-key"])
        elif "client-certificate-data" in user:
            f = tempfile.NamedTemporaryFile("wb", delete=False, suffix=".pem")
            f.write(base64.b64decode(user["client-certificate-data"])); f.write(b"\n")
            f.write(base64.b64decode(user["client-key-data"])); f.close()
            ctx.load_cert_chain(f.name)
        self.headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
        self.ssl = ctx

    async def __aenter__(self):
        self.s = aiohttp.ClientSession(self.base, headers=self.headers,
                                       connector=aiohttp.TCPConnector(ssl=self.ssl, limit=64),
                                       timeout=aiohttp.ClientTimeout(total=None), read_bufsize=2**22)
        return self

    async def __aexit__(self, *a):
        await self.s.close()

    async def call(self, method, path, body=None, ctype="application/json", ok=(200, 201, 202)):
        async with self.s.request(method, path, data=json.dumps(body) if body is not None else None,
                                  headers={"Content-Type": ctype}) as r:
            t = await r.text()
            if r.status not in ok:
                raise RuntimeError(f"{method} {path}: {r.status} {t[:300]}")
            return json.loads(t) if t.startswith("{") else t


async def gather_limited(coros, n=32):
    sem = asyncio.Semaphore(n)
    async def run(c):
        async with sem:
            return await c
    return await asyncio.gather(*[run(c) for c in coros])


def cm(name, rev):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NS},
            "data": {"REV": str(rev), "OTHER": "x" * 64}}


def deployment(i, replicas):
    return {"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": f"w-{i}", "namespace": NS, "annotations": {"reloader.stakater.com/auto": "true"}},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"w": str(i)}},
                     "template": {"metadata": {"labels": {"w": str(i)}},
                                  "spec": {"containers": [{"name": "app", "image": "localhost/app:1",
                                           "envFrom": [{"configMapRef": {"name": f"own-{i}"}},
                                                       {"configMapRef": {"name": "common"}}]}]}}}}


class Watcher:
    """Records when each Deployment's pod template changes."""
    def __init__(self, api): self.api, self.template, self.changes, self.ready = api, {}, {}, asyncio.Event()

    async def run(self):
        rv = (await self.api.call("GET", f"/apis/apps/v1/namespaces/{NS}/deployments"))
        for o in rv["items"]: self.template[o["metadata"]["name"]] = self.h(o)
        self.ready.set(); version = rv["metadata"]["resourceVersion"]
        while True:  # a server ends a watch whenever it likes, above all that of a slow reader
            async with self.api.s.get(f"/apis/apps/v1/namespaces/{NS}/deployments?watch=1&resourceVersion={version}") as r:
                async for line in r.content:
                    now = time.monotonic(); ev = json.loads(line); o = ev["object"]
                    if ev["type"] == "ERROR": raise RuntimeError(f"the watch of the benchmark itself broke: {o}")
                    n = o["metadata"].get("name"); h = self.h(o); version = o["metadata"]["resourceVersion"]
                    if ev["type"] == "MODIFIED" and self.template.get(n) != h:
                        self.changes.setdefault(n, []).append(now)
                    self.template[n] = h

    @staticmethod
    def h(o): return hashlib.sha1(json.dumps(o.get("spec", {}).get("template"), sort_keys=True).encode()).digest()
    def reset(self): self.changes = {}


class Controller:
    def __init__(self, cmd, env, log): self.cmd, self.env, self.log, self.p = cmd, env, log, None
    def start(self):
        self.p = subprocess.Popen(shlex.split(self.cmd), env=self.env, stdout=open(self.log, "ab"), stderr=subprocess.STDOUT, start_new_session=True)
        return self
    def stop(self):
        if self.p:
            self.p.send_signal(signal.SIGTERM)
            try: self.p.wait(15)
            except subprocess.TimeoutExpired: self.p.kill(); self.p.wait()
    def stat(self):
        s = open(f"/proc/{self.p.pid}/status").read(); f = open(f"/proc/{self.p.pid}/stat").read().rsplit(")", 1)[1].split()
        g = lambda k: int(s.split(k)[1].split()[0]) // 1024
        return {"rss_mib": g("VmRSS:"), "peak_rss_mib": g("VmHWM:"), "cpu_s": (int(f[11]) + int(f[12])) / os.sysconf("SC_CLK_TCK")}


def pct(xs, p):
    xs = sorted(xs); return round(xs[min(len(xs) - 1, int(len(xs) * p))] * 1000, 1) if xs else None


async def settle(w, quiet=None, limit=60.0):
    quiet = quiet or QUIET; t0 = time.monotonic(); last = -1; since = t0
    while time.monotonic() - t0 < limit:
        n = sum(len(v) for v in w.changes.values())
        if n != last: last, since = n, time.monotonic()
        if time.monotonic() - since > quiet: return
        await asyncio.sleep(0.1)


async def requests_total(api):
    t = await api.call("GET", "/metrics"); n = 0
    for l in t.splitlines():
        if l.startswith("apiserver_request_total{") and 'verb="WATCH"' not in l: n += float(l.rsplit(" ", 1)[1])
    return int(n)


async def main():
    a = argparse.ArgumentParser(); a.add_argument("--kubeconfig", required=True); a.add_argument("--name", required=True)
    a.add_argument("--cmd", required=True); a.add_argument("--workloads", type=int, default=200); a.add_argument("--replicas", type=int, default=1, help="pods per workload; they must become Ready, by kwok for one")
    a.add_argument("--ballast", default="2000x20", help="COUNTxKIB Secrets that no workload uses"); a.add_argument("--warmup", type=float, default=15)
    a.add_argument("--rate", type=float, default=20); a.add_argument("--quiet", type=float, default=8, help="seconds without a change that end a step: more than the controller's own settling"); a.add_argument("--log", default=os.path.join(tempfile.gettempdir(), "reload_bench.log")); a.add_argument("--json", help="append the result to this file, one JSON line a run")
    A = a.parse_args(); global QUIET; QUIET = A.quiet; N = A.workloads; out = {"name": A.name, "workloads": N, "ballast": A.ballast}
    env = dict(os.environ, KUBECONFIG=A.kubeconfig)
    async with Api(A.kubeconfig) as api:
        await api.call("DELETE", f"/api/v1/namespaces/{NS}", ok=(200, 202, 404))
        while True:
            try: await api.call("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}}); break
            except RuntimeError: await asyncio.sleep(1)
        cnt, kib = map(int, A.ballast.split("x"))
        blob = base64.b64encode(os.urandom(kib * 768)).decode()
        await gather_limited([api.call("POST", f"/api/v1/namespaces/{NS}/secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"ballast-{i}"}, "data": {"blob": blob}}) for i in range(cnt)])
        await gather_limited([api.call("POST", f"/api/v1/namespaces/{NS}/configmaps", cm(f"own-{i}", 0)) for i in range(N)] + [api.call("POST", f"/api/v1/namespaces/{NS}/configmaps", cm("common", 0))])
        await gather_limited([api.call("POST", f"/apis/apps/v1/namespaces/{NS}/deployments", deployment(i, A.replicas)) for i in range(N)])
        for _ in range(120 if A.replicas else 0):
            ds = (await api.call("GET", f"/apis/apps/v1/namespaces/{NS}/deployments"))["items"]
            if all(d["status"].get("readyReplicas") == A.replicas for d in ds): break
            await asyncio.sleep(1)
        if A.replicas: await asyncio.sleep(5)
        w = Watcher(api); task = asyncio.create_task(w.run()); await w.ready.wait()
        def broke(t):
            if not t.cancelled(): os.write(2, f"the watch of the benchmark itself broke: {t.exception()}\n".encode()); os._exit(1)
        task.add_done_callback(broke)
        # 1. start: a controller that starts must not roll anything out
        c = Controller(A.cmd, env, A.log).start(); await asyncio.sleep(A.warmup); await settle(w)
        out["rollouts_on_first_start"] = sum(map(len, w.changes.values())); out["idle"] = c.stat(); w.reset()
        c0 = c.stat()["cpu_s"]; await asyncio.sleep(5); out["idle_cpu_pct"] = round((c.stat()["cpu_s"] - c0) / 5 * 100, 2)
        # 2. steady: one config after another, each used by one workload
        sent = {}; r0 = await requests_total(api); c0 = c.stat()["cpu_s"]; t_begin = time.monotonic()
        async def touch(i, rev):
            await asyncio.sleep(max(0, t_begin + i / A.rate - time.monotonic())); sent[f"w-{i}"] = time.monotonic()
            await api.call("PUT", f"/api/v1/namespaces/{NS}/configmaps/own-{i}", cm(f"own-{i}", rev))
        await asyncio.gather(*[touch(i, 1) for i in range(N)]); await settle(w)
        lat = [w.changes[n][0] - t for n, t in sent.items() if n in w.changes]
        out["steady"] = {"missed": N - len(lat), "duplicate": sum(len(v) - 1 for v in w.changes.values()), "p50_ms": pct(lat, .5), "p99_ms": pct(lat, .99),
                         "requests_per_reload": round((await requests_total(api) - r0 - N) / max(1, len(lat)), 2), "cpu_ms_per_reload": round((c.stat()["cpu_s"] - c0) * 1000 / max(1, len(lat)), 2)}
        w.reset()
        # 3. metadata only: a label on a config changes nothing that a process reads
        await gather_limited([api.call("PATCH", f"/api/v1/namespaces/{NS}/configmaps/own-{i}", {"metadata": {"labels": {"touched": "yes"}}}, "application/merge-patch+json") for i in range(N)])
        await settle(w); out["rollouts_on_metadata_change"] = sum(map(len, w.changes.values())); w.reset()
        # 4. fan-out: one config that every workload uses
        t0 = time.monotonic(); await api.call("PUT", f"/api/v1/namespaces/{NS}/configmaps/common", cm("common", 1)); await settle(w, limit=180)
        lat = [v[0] - t0 for v in w.changes.values()]
        out["fanout"] = {"reached": len(lat), "of": N, "first_ms": pct(lat, 0), "last_ms": pct(lat, 1), "duplicate": sum(len(v) - 1 for v in w.changes.values())}; w.reset()
        # 5. burst: both configs of a workload change at once; one rollout is enough
        await asyncio.gather(*[api.call("PUT", f"/api/v1/namespaces/{NS}/configmaps/own-{i}", cm(f"own-{i}", 2)) for i in range(N)], api.call("PUT", f"/api/v1/namespaces/{NS}/configmaps/common", cm("common", 2)))
        await settle(w, limit=180); out["burst"] = {"reached": len(w.changes), "of": N, "rollouts": sum(map(len, w.changes.values()))}; w.reset()
        # 5b. a deploy: the config, and right after it the image; the image's own rollout already reads the new config
        async def deploy(i):
            await api.call("PUT", f"/api/v1/namespaces/{NS}/configmaps/own-{i}", cm(f"own-{i}", 5))
            await api.call("PATCH", f"/apis/apps/v1/namespaces/{NS}/deployments/w-{i}", {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "localhost/app:2"}]}}}}, "application/strategic-merge-patch+json")
        await gather_limited([deploy(i) for i in range(N)], 4); await settle(w, limit=180); out["deploy"] = {"rollouts": sum(map(len, w.changes.values())), "of": N}; w.reset()
        out["busy"] = c.stat()
        # 6. restart without a change
        c.stop(); c.start(); await asyncio.sleep(A.warmup); await settle(w); out["rollouts_on_restart"] = sum(map(len, w.changes.values())); w.reset()
        # 7. changes while the controller is away
        c.stop(); await gather_limited([api.call("PUT", f"/api/v1/namespaces/{NS}/configmaps/own-{i}", cm(f"own-{i}", 3)) for i in range(N)])
        t0 = time.monotonic(); c.start(); await asyncio.sleep(A.warmup); await settle(w, limit=120)
        out["changed_while_away"] = {"reached": len(w.changes), "of": N, "last_ms_after_start": pct([v[0] - t0 for v in w.changes.values()], 1)}; w.reset()
        c.stop(); task.cancel()
        # the floor: the same write and the same watch, with a patch sent by this script at once
        await asyncio.sleep(5); lat = []; r0 = await requests_total(api)
        for i in range(min(N, 100)):
            t0 = time.monotonic(); await api.call("PUT", f"/api/v1/namespaces/{NS}/configmaps/own-{i}", cm(f"own-{i}", 9))
            await api.call("PATCH", f"/apis/apps/v1/namespaces/{NS}/deployments/w-{i}", {"spec": {"template": {"metadata": {"annotations": {"floor": "1"}}}}}, "application/merge-patch+json"); lat.append(time.monotonic() - t0)
        await asyncio.sleep(4)  # the built-in controllers react to a changed template too: count that
        out["floor_two_calls_ms"] = {"p50": pct(lat, .5), "p99": pct(lat, .99), "requests_per_reload": round((await requests_total(api) - r0) / len(lat) - 1, 2)}
        t0 = time.monotonic(); await gather_limited([api.call("PATCH", f"/apis/apps/v1/namespaces/{NS}/deployments/w-{i}", {"spec": {"template": {"metadata": {"annotations": {"floor": "2"}}}}}, "application/merge-patch+json") for i in range(N)], 16)
        out["floor_fanout_ms"] = round((time.monotonic() - t0) * 1000)
    print(json.dumps(out, indent=1))
    if A.json: open(A.json, "a").write(json.dumps(out) + "\n")


asyncio.run(main())
