#!/usr/bin/env python3
"""Measures the start with many Secrets: until the operator is ready, beside a bare paged list of them, and its memory.

  first_list.py --kubeconfig K --cmd 'restamp run --bind 127.0.0.1:18080' --metrics http://127.0.0.1:18080/metrics
      [--secrets 20000x20] --name NAME --json FILE
"""
import argparse, asyncio, base64, json, os, shlex, signal, subprocess, time
import aiohttp
from api import Api, all_of

NAMESPACE = "first-list"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"


def secret(number, blob):
    return {"metadata": {"name": f"ballast-{number}"}, "data": {"blob": blob}}


async def bare_list(api):
    """Seconds for all pages of 500, read and thrown away."""
    begin, more = time.monotonic(), ""
    while True:
        page = await api.text("GET", f"{SECRETS}?limit=500&continue={more}")
        # The list's own metadata come first.
        head = page[:4096]
        start = head.find('"continue":"')
        if start < 0:
            return time.monotonic() - begin
        more = head[start + len('"continue":"'):].split('"', 1)[0]


def memory(pid):
    """Resident and peak, in MiB."""
    lines = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status", encoding="utf-8") if ":" in line)
    return {name: round(int(lines[key].split()[0]) / 1024, 1) for name, key in (("rss_mib", "VmRSS"), ("peak_rss_mib", "VmHWM"))}


async def until_synced(metrics, process):
    """Until the Secrets have been listed."""
    async with aiohttp.ClientSession() as session:
        while process.poll() is None:
            try:
                async with session.get(metrics) as answer:
                    if 'restamp_watch_synced{kind="Secret"} 1' in await answer.text():
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.02)
    raise RuntimeError("the operator has ended")


async def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--kubeconfig", "--cmd", "--metrics", "--name", "--json", "--log"):
        parser.add_argument(name, required=True)
    parser.add_argument("--secrets", default="20000x20", help="COUNTxKIB")
    arguments = parser.parse_args()
    count, kib = map(int, arguments.secrets.split("x"))
    async with Api(arguments.kubeconfig) as api:
        await api.namespace(NAMESPACE)
        blob = base64.b64encode(os.urandom(kib * 768)).decode()
        await all_of([api.call("POST", SECRETS, secret(number, blob)) for number in range(count)])
        bare = min([await bare_list(api) for _ in range(3)])
        env = dict(os.environ, KUBECONFIG=arguments.kubeconfig)
        starts, figures = [], {}
        for _ in range(3):
            begin = time.monotonic()
            log = open(arguments.log, "ab")
            process = subprocess.Popen(shlex.split(arguments.cmd), env=env, stdout=log, stderr=subprocess.STDOUT)
            await until_synced(arguments.metrics, process)
            starts.append(time.monotonic() - begin)
            await asyncio.sleep(10)  # what the first list took is given back
            figures = memory(process.pid)
            process.send_signal(signal.SIGTERM)
            process.wait(30)
    out = {"name": arguments.name, "secrets": arguments.secrets, "bare_list_s": round(bare, 2), "ready_s": round(min(starts), 2), **figures}
    print(json.dumps(out))
    with open(arguments.json, "a", encoding="utf-8") as file:
        file.write(json.dumps(out) + "\n")


asyncio.run(main())
