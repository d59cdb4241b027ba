"""One bus as its clients see it: its own ids, secrets and handles behind names that both buses share."""

import base64
import http.client
import json
import re
import subprocess
import tempfile
import time
import urllib.parse

NAME = re.compile(r"<<([^<>]+)>>")
ID = re.compile(r"\b[wpcojs][a-z0-9]{20}\b")
NOW = re.compile(r"it is \d{4}-\d\d-\d\dT[\d:.]+Z by the bus's clock")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
# Members whose time the bus makes itself.
TIMES = {"at", "begun_at", "created_at", "dead_lettered_at", "enqueued_at", "finished_at", "published_at", "recorded_at", "started_at",
         "time", "to"}
# Headers that a client may build on.
HEADERS = ("allow", "cache-control", "content-type", "retry-after", "www-authenticate", "pragma", "location")


class Answer:
    """A status, headers and a body, as they came."""

    def __init__(self, status, headers, raw):
        self.status, self.headers, self.raw = status, {k.lower(): v for k, v in headers}, raw
        try:
            self.body = json.loads(raw) if raw else None
        except ValueError:
            self.body = None

    @property
    def rules(self):
        violations = self.body.get("violations", []) if isinstance(self.body, dict) else []
        return [v.get("rule") for v in violations]


class Side:
    """A bus. What it has made is known by `names`: its own value of each name."""

    def __init__(self, name, credentials):
        url = urllib.parse.urlsplit(credentials["base_url"])
        self.name, self.https, self.host, self.prefix = name, url.scheme == "https", url.netloc, url.path.rstrip("/")
        self.names, self.symbols, self.tokens, self.connection = {}, {}, {}, None
        self.learn("O0", credentials["operator"]["client_id"])
        self.learn("O0.secret", credentials["operator"]["client_secret"])

    def learn(self, symbol, value):
        self.names[symbol] = value
        self.symbols[value] = symbol

    def fill(self, text):
        """A path, header or body with this bus's own values."""
        return NAME.sub(lambda m: self.names.get(m.group(1), m.group(0)), text)

    def send(self, method, path, body=None, headers=None, who=None):
        """One request as `who`, whose token is fetched first. A kept connection that has closed is opened again, once."""
        headers = {k: self.fill(v) for k, v in (headers or {}).items()}
        if who:
            headers.setdefault("authorization", "Bearer " + self.token(who))
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        if isinstance(body, str):
            body = self.fill(body).encode()
        target = self.prefix + self.fill(path)
        for again in (False, True):
            kept = self.connection is not None
            try:
                if not kept:
                    kind = http.client.HTTPSConnection if self.https else http.client.HTTPConnection
                    self.connection = kind(self.host, timeout=60)
                self.connection.request(method, target, body, headers)
                answer = self.connection.getresponse()
                return Answer(answer.status, answer.getheaders(), answer.read())
            except (http.client.HTTPException, OSError):
                self.connection.close()
                self.connection = None
                if again or not kept:
                    raise

    def token(self, who):
        token, until = self.tokens.get(who, (None, 0))
        if time.monotonic() >= until:
            answer = self.token_request(f"<<{who}>>", f"<<{who}.secret>>")
            if answer.status != 200:
                raise RuntimeError(f"{self.name}: no token for {who}: {answer.status} {answer.raw[:300]}")
            token = answer.body["access_token"]
            self.tokens[who] = (token, time.monotonic() + answer.body["expires_in"] - 300)
        return token

    def token_request(self, client, secret, form="grant_type=client_credentials", headers=None):
        basic = base64.b64encode(self.fill(f"{client}:{secret}").encode()).decode()
        headers = {"authorization": "Basic " + basic, "content-type": "application/x-www-form-urlencoded", **(headers or {})}
        return self.send("POST", "/oauth/token", form, {k: v for k, v in headers.items() if v is not None})

    # -- the same on both sides --------------------------------------------------------------------------------------------

    def same(self, answer, drop=()):
        """The answer with what must differ put into names."""
        headers = {k: v for k, v in answer.headers.items() if k in HEADERS}
        if answer.status == 204:  # the gateway of AWS names a type even where there is no body
            headers.pop("content-type", None)
        if "retry-after" in headers:
            headers["retry-after"] = "some"
        if answer.body is None:
            body = answer.raw.decode("utf-8", "replace")
        else:
            body = self.value(answer.body, None, set(drop))
        return {"status": answer.status, "headers": headers, "body": body}

    def value(self, value, member, drop):
        if isinstance(value, dict):
            kept = {k: v for k, v in value.items() if k not in drop}
            return {k: v if k == "envelope" else self.value(v, k, drop) for k, v in kept.items()}
        if isinstance(value, list):
            return [self.value(v, member, drop) for v in value]
        if isinstance(value, str):
            if member in TIMES and TIME.fullmatch(value):
                return "<time>"
            if member == "access_token":
                return self.claims(value)
            if value in self.symbols:
                return f"<<{self.symbols[value]}>>"
            value = NOW.sub("it is <time> by the bus's clock", value)
            return ID.sub(lambda m: f"<<{self.symbols[m.group(0)]}>>" if m.group(0) in self.symbols else m.group(0), value)
        return value

    def claims(self, token):
        """What a token says, but for what differs by nature."""
        def part(n):
            text = token.split(".")[n]
            return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        head, claims = part(0), part(1)
        lasts = claims.pop("exp", 0) - claims.pop("iat", 0)
        for name in ("iss", "aud", "jti"):
            claims[name] = name in claims
        head["kid"] = bool(head.get("kid"))
        return [head, self.value(claims, None, set()), lasts]


class Served:
    """`storybus serve` of its own, in a directory of its own."""

    def __init__(self, binary):
        self.home = tempfile.TemporaryDirectory(prefix="alike-")
        self.file = f"{self.home.name}/credentials.json"
        self.log = open(f"{self.home.name}/log", "wb")
        command = [binary, "serve", "--addr", "127.0.0.1:0", "--data", f"{self.home.name}/data", "--credentials-file", self.file]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def credentials(self):
        end = time.monotonic() + 30
        while time.monotonic() < end and self.process.poll() is None:
            try:
                with open(self.file) as file:
                    return json.load(file)
            except (OSError, ValueError):
                time.sleep(0.05)
        with open(self.log.name) as log:
            raise RuntimeError(f"storybus serve did not start: {log.read()}")

    def stop(self):
        self.process.terminate()
        self.process.wait(20)
        self.log.close()
        self.home.cleanup()
