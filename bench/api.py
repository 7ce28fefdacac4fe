"""Talks to the API server of a kubeconfig, for the measurements that reload_bench.py does not make."""
import asyncio, json, ssl
import aiohttp, yaml


class Api:
    def __init__(self, kubeconfig):
        config = yaml.safe_load(open(kubeconfig, encoding="utf-8"))
        user = config["users"][0]["user"]
        self.server = config["clusters"][0]["cluster"]["server"]
        self.headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
        self.tls = ssl.create_default_context()
        self.tls.check_hostname = False
        self.tls.verify_mode = ssl.CERT_NONE
        if "client-certificate" in user:
            self.tls.load_cert_chain(user["client-certificate"], user["client-key"])

    async def __aenter__(self):
        connector = aiohttp.TCPConnector(ssl=self.tls, limit=32)
        timeout = aiohttp.ClientTimeout(total=None)
        self.session = aiohttp.ClientSession(self.server, headers=self.headers, connector=connector, timeout=timeout)
        return self

    async def __aexit__(self, *_):
        await self.session.close()

    async def text(self, method, path, body=None, ok=(200, 201, 202)):
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": "application/json"}
        async with self.session.request(method, path, data=data, headers=headers) as answer:
            text = await answer.text()
            if answer.status not in ok:
                raise RuntimeError(f"{method} {path}: {answer.status} {text[:300]}")
            return text

    async def call(self, method, path, body=None, ok=(200, 201, 202)):
        return json.loads(await self.text(method, path, body, ok))

    async def namespace(self, name):
        await self.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}}, ok=(201, 409))


async def all_of(calls, at_once=32):
    gate = asyncio.Semaphore(at_once)

    async def one(call):
        async with gate:
            return await call

    return await asyncio.gather(*[one(call) for call in calls])
