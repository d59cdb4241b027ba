"""The comparison itself: the same request to both buses, and whether they are answered alike."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

# A grant that was looked up is believed for so long; see docs/aws.md.
GRANTS = 61
SHOWN = 40


class Run:
    """Two buses, and what they were asked so far."""

    def __init__(self, a, b, rng, verbose=False):
        self.a, self.b, self.rng, self.verbose = a, b, rng, verbose
        self.pool = ThreadPoolExecutor(2)
        self.operation, self.compared, self.differences, self.waited = "", 0, 0, 0.0
        self.unsettled_since = None

    def both(self, ask):
        """What both say."""
        one, two = self.pool.submit(ask, self.a), self.pool.submit(ask, self.b)
        return one.result(), two.result()

    def alike(self, title, ask, lag=0, drop=(), shape=None):
        """Asks both and compares; where one may be behind (`lag`, in seconds) again until they agree. The answers as they came."""
        end, began = time.monotonic() + lag, time.monotonic()
        while True:
            answers = self.both(ask)
            one, two = (side.same(answer, drop) for side, answer in zip((self.a, self.b), answers))
            if shape and one["status"] < 300 and two["status"] < 300:
                one["body"], two["body"] = shape(one["body"]), shape(two["body"])
            if one == two or time.monotonic() > end:
                break
            time.sleep(0.25)
        self.waited = max(self.waited, time.monotonic() - began if lag else 0)
        self.check(title, one, two)
        return answers

    def request(self, title, method, path, body=None, who=None, headers=None, **how):
        return self.alike(f"{title}: {method} {path}", lambda side: side.send(method, path, body, headers, who), **how)

    def check(self, title, one, two):
        self.compared += 1
        if self.verbose:
            print(f"{self.operation}: {title}: {one['status'] if isinstance(one, dict) and 'status' in one else ''}", flush=True)
        if one == two:
            return True
        self.differences += 1
        if self.differences <= SHOWN:
            print(f"DIFFERENCE {self.differences} in {self.operation}: {title}\n  {self.a.name}: {shown(one, two)}\n  {self.b.name}: {shown(two, one)}",
                  flush=True)
        return False

    def made(self, title, path, body, learn, who="O0", **how):
        """Something new: its members by the names that both buses know them by. None when it was refused."""
        answers = self.both(lambda side: side.send("POST", path, body, None, who))
        if all(answer.status in (201, 202) for answer in answers):
            for side, answer in zip((self.a, self.b), answers):
                for member, symbol in learn.items():
                    if member in answer.body:
                        side.learn(symbol, answer.body[member])
        one, two = (side.same(answer, how.get("drop", ())) for side, answer in zip((self.a, self.b), answers))
        self.check(f"{title}: POST {path}", one, two)
        return answers if answers[0].status in (201, 202) and answers[1].status in (201, 202) else None

    # -- what is looked up once and believed for a while ----------------------------------------------------------------------

    def unsettle(self):
        self.unsettled_since = time.monotonic()

    def settle(self):
        """Waits until nothing that was changed is still believed to be as it was."""
        if self.unsettled_since is not None:
            time.sleep(max(0, self.unsettled_since + GRANTS - time.monotonic()))
            self.unsettled_since = None


def shown(value, other):
    """A value as far as it is not the same in the other."""
    if isinstance(value, dict) and isinstance(other, dict):
        value = {k: shown(v, other.get(k)) for k, v in value.items() if k not in other or other[k] != v} if value != other else value
        return value
    if isinstance(value, list) and isinstance(other, list):
        return [shown(v, o) for v, o in zip(value, other) if v != o] + value[len(other):]
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) < 1500 else text[:1500] + "…"
