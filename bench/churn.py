#!/usr/bin/env python3
"""Keeps pods coming and going beside what is measured, until it is ended.

  churn.py --kubeconfig K [--pods 10000] [--rate 20]

It prints `churning` once all the pods run.
"""
import argparse, asyncio, itertools
from api import Api, all_of

NAMESPACE, EACH = "churn", 50
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


def deployment(number):
    labels = {"app": f"service-{number}"}
    containers = [{"name": "app", "image": "localhost/app:1"}, {"name": "proxy", "image": "localhost/proxy:1"}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    spec = {"replicas": EACH, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": f"service-{number}"}, "spec": spec}


async def running(api):
    deployments = (await api.call("GET", DEPLOYMENTS))["items"]
    return sum(deployment["status"].get("readyReplicas", 0) for deployment in deployments)


async def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--pods", type=int, default=10000)
    parser.add_argument("--rate", type=float, default=20, help="pods that go, a second")
    arguments = parser.parse_args()
    async with Api(arguments.kubeconfig) as api:
        await api.namespace(NAMESPACE)
        numbers = range(arguments.pods // EACH)
        await all_of([api.call("POST", DEPLOYMENTS, deployment(number)) for number in numbers])
        while await running(api) < arguments.pods:
            await asyncio.sleep(2)
        print("churning", flush=True)
        for number in itertools.cycle(numbers):
            selector = f"?labelSelector=app=service-{number}&limit=5"
            pods = (await api.call("GET", PODS + selector))["items"]
            for pod in pods:
                await api.call("DELETE", f"{PODS}/{pod['metadata']['name']}", ok=(200, 202, 404))
            await asyncio.sleep(len(pods) / arguments.rate)


asyncio.run(main())
