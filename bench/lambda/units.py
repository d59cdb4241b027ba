#!/usr/bin/env python3
"""units.py PERF_OUT PERF OUT   What one warm invocation of each function asks of AWS, and how large: the figures behind docs/costs.md.

The functions run against the AWS stand-in, which writes every request down; from the requests of the last invocation come the items
as they would lie in the tables, by DynamoDB's rules of size, and their write and read units. OUT is what prepare.py wrote, PERF
the folder of the harness and PERF_OUT where it was built."""

import base64
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.parse

WARM = 50
# Which attributes of an item an index holds beside the keys of the table.
INDEXES = {
    "bus-bus": [("list_pk", "list_sk")],
    "bus-archive": [("m", "sk"), ("s", "sk"), ("c", "sk")],
}


def value_size(value):
    (kind, inner), = value.items()
    if kind == "S":
        return len(inner.encode())
    if kind == "N":
        digits = inner.strip("-").replace(".", "").strip("0")
        return (len(digits) + 1) // 2 + 1
    if kind == "B":
        return len(base64.b64decode(inner))
    raise ValueError(kind)


def size(item, names=None):
    """<https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html>"""
    return sum(len(name.encode()) + value_size(value) for name, value in item.items() if names is None or name in names)


class Tables:
    """What the requests would leave behind: enough to know how large an item is when it is updated."""

    def __init__(self, answers):
        self.items = {}
        given = [answer["body"] for answer in answers["GetItem"]] + answers["TransactGetItems"]["body"]["Responses"]
        for item in (answer["Item"] for answer in given if "pk" in answer.get("Item", {})):
            self.put("bus-bus", item)

    def put(self, table, item):
        self.items[(table, item["pk"]["S"], item["sk"]["S"])] = item
        return item

    def update(self, write):
        key = write["Key"]
        place = (write["TableName"], key["pk"]["S"], key["sk"]["S"])
        before = self.items.get(place, key)
        after = dict(before)
        names, values = write.get("ExpressionAttributeNames", {}), write.get("ExpressionAttributeValues", {})
        sets = re.sub(r"if_not_exists\([^)]*\)", "", write["UpdateExpression"].removeprefix("SET "))
        for name, value in re.findall(r"(#?\w+)\s*=\s*(:\w+)", sets):
            after[names.get(name, name)] = values[value]
        self.items[place] = after
        return max(before, after, key=size)


def writes(tables, table, action, write, factor):
    """A line for a write: kind, size, units of the table, units of its indexes, and what the item takes in the indexes."""
    if action == "PutItem":
        item = tables.put(table, write["Item"])
    elif action == "UpdateItem":
        item = tables.update(write)
    else:
        item = tables.items.get((table, write["Key"]["pk"]["S"], write["Key"]["sk"]["S"]), write["Key"])
    units = factor * math.ceil(size(item) / 1024)
    indexed = stored = 0
    # an index is written to when what it holds changes: with a new item, not with an update of what it does not hold
    if action == "PutItem":
        for names in INDEXES[table]:
            if names[0] in item:
                indexed += math.ceil(size(item, {"pk", "sk", *names}) / 1024)
                stored += size(item, {"pk", "sk", *names}) + 100
    name = item["pk"]["S"].split("#")[0] if table == "bus-bus" else "archive"
    return f"{action} {name}", size(item), f"{units} + {indexed} write units" + (f", {stored} bytes in indexes" if stored else ""), (units, indexed)


def lines(tables, target, body):
    operation = target.rsplit(".", 1)[-1]
    if operation in ("PutItem", "UpdateItem", "DeleteItem"):
        yield writes(tables, body["TableName"], operation, body, 1)
    elif operation == "TransactWriteItems":
        names = {"Put": "PutItem", "Update": "UpdateItem", "ConditionCheck": "check"}
        for action in body["TransactItems"]:
            (kind, write), = action.items()
            yield writes(tables, write["TableName"], names.get(kind, kind), write, 2)
    else:
        # strongly consistent, and what is read here is smaller than one unit of 4 kB
        read = {"GetItem": 1, "Query": 1, "TransactGetItems": 2 * len(body.get("TransactItems", []))}.get(operation, 0)
        yield operation, 0, f"{read} read units", (0, 0)


def requests(log):
    """The requests in the stand-in's log."""
    data = pathlib.Path(log).read_bytes()
    at = 0
    while (start := data.find(b"POST ", at)) >= 0:
        end = data.index(b"\r\n\r\n", start) + 4
        head = data[start:end].decode().lower()
        length = int(re.search(r"content-length: (\d+)", head)[1])
        at = end + length
        target = re.search(r"x-amz-target: (\S+)", data[start:end].decode(), re.I)
        yield target and target[1], data[end:at]


def main():
    perf_out, perf, out = (pathlib.Path(arg).resolve() for arg in sys.argv[1:4])
    answers = json.loads((out / "answers.json").read_text())
    env = dict(os.environ, PERF_OUT=str(perf_out))
    for function in sorted(out.glob("*.sh")):
        counts = []
        for warm in (1, WARM + 1):
            with tempfile.NamedTemporaryFile(delete=False) as log:
                server = subprocess.Popen([perf_out / "target/tools/fakeaws", "0", "--log", "--answers", out / "answers.json"],
                                          stdout=subprocess.PIPE, stderr=log, text=True)
            try:
                endpoint = f"http://localhost:{server.stdout.readline().strip()}"
                subprocess.run([perf / "run.sh", function, endpoint, "--n", str(warm), "--spawns", "1"], env=env, check=True,
                               stdout=subprocess.DEVNULL)
            finally:
                server.terminate()
                server.wait()
            counts.append(list(requests(log.name)))
            os.unlink(log.name)
        # instances may differ by a few requests at their start, which so many invocations even out
        each = round((len(counts[1]) - len(counts[0])) / WARM)
        last = counts[1][len(counts[1]) - each:]
        first = (len(counts[0]) - len(last)) // 2
        tables = Tables(answers)
        print(f"\n{function.stem}: {len(last)} requests warm, {first} the first time")
        total = [0, 0]
        for target, body in counts[1][:-len(last)]:  # what was written before is what is updated now
            if target and "DynamoDB" in target:
                list(lines(tables, target, json.loads(body)))
        for target, body in last:
            if target and "DynamoDB" in target:
                for name, length, told, units in lines(tables, target, json.loads(body)):
                    print(f"  {name:28} {length:6} bytes  {told}")
                    total = [have + more for have, more in zip(total, units)]
            elif target:
                print(f"  {target.rsplit('.', 1)[-1]:28} {len(body):6} bytes  1 request")
            else:
                fields = dict(urllib.parse.parse_qsl(body.decode()))
                own = sum(len(v.encode()) for k, v in fields.items() if k == "Message" or k.startswith("MessageAttributes"))
                print(f"  {fields['Action']:28} {own:6} bytes of message and attributes")
        if any(total):
            print(f"  {'in all':28}               {total[0]:2} + {total[1]} write units")


if __name__ == "__main__":
    main()
