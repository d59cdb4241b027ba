"""What operators do."""

import json
import time

import messages

# What is fed from queues and logs may be behind by so long.
ARCHIVED, NOTED, DIED = 60, 90, 60


def tenant(workspace):
    return f"/admin/tenants/<<{workspace.symbol}>>"


def member_of(name):
    """A list, in no order: ids are random, and lists are in theirs."""
    def shape(body):
        return {**body, name: sorted(body[name], key=lambda e: json.dumps(e, sort_keys=True))} if isinstance(body, dict) and name in body else body
    return shape


def new_workspace(w):
    if len(w.workspaces) < 6:
        w.workspace(**({"strict_message_types": True} if w.rng.random() < 0.2 else {}))
    else:
        lists(w)


def new_producer(w):
    workspace = w.any_workspace()
    if len(workspace.producers) < 5:
        types = w.rng.choice([["*"], ["story.*", "telling.*"], ["asset.note", "asset.ingested", "story.context"], []])
        rate = {"rate": {"per_second": 1000, "burst": 1000}} if w.rng.random() < 0.2 else {}
        role = {"role_arn": f"arn:aws:iam::000000000000:role/{w.name}-{w.symbol('role')}"} if w.rng.random() < 0.2 else {}
        w.producer(workspace, types, w.rng.randint(1, 3), **rate, **role)
    else:
        lists(w)


def new_consumer(w):
    workspace = w.any_workspace()
    if len(workspace.consumers) < 5:
        sources = [p.system_ids[0] for p in workspace.producers[:2]]
        members = w.rng.choice([
            {}, {"message_types": ["telling.*", "story.context"]}, {"topic_prefixes": ["som.desk."]}, {"sources": sources},
            {"message_types": ["*"], "max_receives": 2}, {"message_types": ["asset.*"], "topic_prefixes": ["som.asset", "som.desk.a"], "max_receives": 1},
            {"max_receives": 3, "reader_role_arn": "arn:aws:iam::000000000000:role/reader"}])
        w.consumer(workspace, **members)
    else:
        lists(w)


def taken(w):
    """What another has already."""
    workspace, producer = w.any_producer()
    other = w.any_workspace()
    body = {"name": "x", "system_ids": ["free-" + w.ids.next(), w.rng.choice(producer.system_ids)], "message_types": []}
    w.run.request("a system_id that is taken", "POST", f"{tenant(other)}/producers", body, "O0")


def a_connection(w):
    """A connection: where it is, and its name."""
    if w.rng.random() < 0.5:
        workspace, producer = w.any_producer()
        return f"{tenant(workspace)}/producers/<<{producer.symbol}>>", producer
    workspace, consumer = w.any_consumer()
    return f"{tenant(workspace)}/consumers/<<{consumer.symbol}>>", consumer


BAD = ['', '{', '[]', 'null', '"x"', '{}', '{"name":""}', '{"name":null}', '{"name":5}', '{"name":"x","surprise":1}', '{"name":"x","name":"y"}',
       '{"name":"' + "n" * 201 + '"}', '{"name":"x","max_receives":0}', '{"name":"x","max_receives":1.5}', '{"name":"x","max_receives":"5"}',
       '{"name":"x","visibility_seconds":43201}', '{"name":"x","message_types":["Bad Type"]}', '{"name":"x","message_types":"*"}',
       '{"name":"x","message_types":["*","*"]}', '{"name":"x","system_ids":[""],"message_types":[]}', '{"name":"x","system_ids":["a","a"],"message_types":["*"]}',
       '{"name":"x","system_ids":[],"message_types":[],"rate":{"per_second":0,"burst":1}}', '{"name":"x","system_ids":[],"message_types":[],"rate":5}',
       '{"name":"x","system_ids":[],"message_types":[],"role_arn":"arn"}', '{"name":"x","reader_role_arn":"arn:aws:iam::1:user/x"}',
       '{"name":"x","disabled":true}', '{"disabled":"yes"}', '{"paused":1}', '{"strict_message_types":"x"}', '{"name":"x","strict_message_types":null}',
       '{"name":"x","topic_prefixes":["' + '","'.join(f"p{n}" for n in range(20)) + '"],"sources":["' + '","'.join(f"s{n}" for n in range(20)) + '"]}',
       '{"name":"x\\u0001"}', '{"name":"\\ud800"}', '{"name":"x"} x', '{"message_types":["' + '","'.join(f"t.x{n}" for n in range(151)) + '"]}']


def bad_bodies(w):
    body, (at, _) = w.rng.choice(BAD), a_connection(w)
    workspace = tenant(w.any_workspace())
    method, to = w.rng.choice([("POST", "/admin/tenants"), ("PATCH", workspace), ("POST", f"{workspace}/producers"), ("POST", f"{workspace}/consumers"),
                               ("PATCH", at), ("POST", "/admin/operators"), ("POST", "/admin/tenants/w-no-such/producers")])
    # what is right after all must have no lasting effect: only a body that is wrong for this route is sent
    harmless = {"/admin/tenants": "name", "/admin/operators": "name"}
    if method == "POST" and to in harmless and body in ('{"name":"x"}',):
        return
    if method == "PATCH" and body in ('{"name":"x","max_receives":0}', '{}'):
        body = '{"name":7}'
    if method == "PATCH" and body.startswith('{"name":"x","disabled"'):
        return
    w.run.request("a wrong body", method, to, body, "O0", drop=("tenant",))


def bad_job_bodies(w):
    workspace, consumer = w.any_consumer()
    kind, body = w.rng.choice([
        ("redrives", '{"message_ids":"all"}'), ("redrives", '{"message_ids":[]}'), ("redrives", '{"message_ids":["x"]}'), ("redrives", '[]'), ("redrives", '{"x":1}'),
        ("replays", '{}'), ("replays", '{"from":"2026-01-01T00:00:00Z"}'), ("replays", '{"from":"x","to":"y"}'),
        ("replays", '{"from":"2099-01-01T00:00:00Z","to":"2099-01-02T00:00:00Z"}'), ("replays", '{"from":"2001-01-01T00:00:00Z","to":"2001-01-02T00:00:00Z"}'),
        ("replays", '{"from":"2026-11-02T00:00:00Z","to":"2026-11-01T00:00:00Z"}'), ("replays", '{"from":"2026-11-02T00:00:00Z","to":"2026-11-03T00:00:00Z","message_types":["B"]}')])
    where = w.rng.choice([f"{tenant(workspace)}/consumers/<<{consumer.symbol}>>"] * 4 + [f"{tenant(workspace)}/consumers/c-no-such"])
    w.run.request("a wrong job", "POST", f"{where}/{kind}", body, "O0")


def show(w):
    at, _ = a_connection(w)
    at = w.rng.choice([at, at, f"{at}/secrets", tenant(w.any_workspace()), at + "x", "/admin/tenants/w-no-such", "/admin/operators/o-no-such",
                       f"{tenant(w.any_workspace())}/producers/p-no-such"])
    w.run.request("looked at", "GET", at, None, "O0", shape=member_of("secrets"))


def lists(w):
    """A list, whole or by its pages."""
    workspace, kind = w.any_workspace(), w.rng.choice(["producers", "consumers"])
    limit = w.rng.choice([1000, 1000, 2, 1])

    def all_pages(side):
        entries, pages, after = [], 0, ""
        while True:
            answer = side.send("GET", f"{tenant(workspace)}/{kind}?limit={limit}{after}", None, None, "O0")
            if answer.status != 200:
                return answer.status
            entries += answer.body[kind]
            pages += 1
            if "next" not in answer.body:
                return pages, member_of(kind)({kind: side.value(entries, None, set())})
            after = f"&after={answer.body['next']}"
    w.run.check(f"{kind} of {workspace.symbol} by {limit}", *w.run.both(all_pages))


def top_lists(w):
    """Lists of the whole bus: of what this run has made."""
    kind, own = w.rng.choice([("tenants", "tenant"), ("operators", "client_id")])

    def known(side):
        answer = side.send("GET", f"/admin/{kind}?limit=1000", None, None, "O0")
        entries = [e for e in answer.body[kind] if e[own] in side.symbols]
        return member_of(kind)({kind: side.value(entries, None, {"name"} if kind == "operators" else set())})
    w.run.check(kind, *w.run.both(known))


def bad_queries(w):
    workspace, consumer = w.any_consumer()
    to, query = w.rng.choice([
        ("/admin/tenants", "limit=0"), ("/admin/tenants", "limit=1001"), ("/admin/tenants", "limit=x"), ("/admin/audit", "limit=0"), ("/admin/audit", "before=!"),
        (f"{tenant(workspace)}/activity", "limit=0"), (f"{tenant(workspace)}/activity", "before=xyz"), (f"{tenant(workspace)}/activity", "producer=!"),
        (f"{tenant(workspace)}/stories", "after=xyz"), (f"{tenant(workspace)}/jobs", "limit=-1"), (f"{tenant(workspace)}/jobs", "after=%20"),
        (f"{tenant(workspace)}/consumers/<<{consumer.symbol}>>/dead-letters", "max=0"), (f"{tenant(workspace)}/consumers/<<{consumer.symbol}>>/dead-letters", "after=x"),
        (f"{tenant(workspace)}/producers", "limit=1&limit=1"), (f"{tenant(workspace)}/producers", "after="), ("/admin/operators", "limit=%ff")])
    w.run.request("a wrong parameter", "GET", f"{to}?{query}", None, "O0")


def rename(w):
    """A change that nobody's rights depend on."""
    at, connection = a_connection(w)
    body = w.rng.choice([{"name": f"renamed {w.rng.randrange(99)}"}, {}, {"name": "żółć 漢字"}])
    if connection.symbol.startswith("P") and w.rng.random() < 0.5:
        body["rate"] = w.rng.choice([None, {"per_second": 900, "burst": 900}])
        body["role_arn"] = w.rng.choice([None, f"arn:aws:iam::000000000000:role/{w.name}-{w.symbol('role')}"])
    if connection.symbol.startswith("C") and w.rng.random() < 0.3:
        body["reader_role_arn"] = w.rng.choice([None, "arn:aws:iam::000000000000:role/reader"])
    w.run.request("changed", "PATCH", at, body, "O0", drop=("settled_by",))


def rename_workspace(w):
    w.run.request("changed", "PATCH", tenant(w.any_workspace()), {"name": f"named {w.rng.randrange(99)}"}, "O0")


def rights(w):
    """Changes that take a while to hold everywhere: they are made on clients of their own, and asked about after everything has settled."""
    workspace = w.any_workspace()
    producer, consumer = w.producer(workspace), w.consumer(workspace)
    if not (producer and consumer):
        return
    workspace.producers.remove(producer)
    workspace.consumers.remove(consumer)
    message = json.dumps(messages.envelope(w.ids, producer.system_ids[0], "asset.note", {"n": 1}))
    publish, pull = f"/tenants/<<{workspace.symbol}>>/messages", f"/tenants/<<{workspace.symbol}>>/consumers/<<{consumer.symbol}>>/messages"
    # so that both have a token and were looked up
    w.run.request("before", "POST", publish, message, producer.symbol)
    w.run.request("before", "GET", f"{pull}?max=1&visibility=1", None, consumer.symbol, shape=lambda body: None)
    change = w.rng.choice([{"disabled": True}, {"message_types": ["story.*"]}, {"system_ids": [f"other-{producer.symbol}-{w.name}"]}, None])
    pause = w.rng.choice([{"paused": True}, {"disabled": True}, None])
    for kind, who, body in (("producers", producer, change), ("consumers", consumer, pause)):
        at = f"{tenant(workspace)}/{kind}/<<{who.symbol}>>"
        if body is None:
            w.run.request("deleted", "DELETE", at, None, "O0")
            w.run.request("deleted again", "DELETE", at, None, "O0")
            w.run.request("it is gone", "GET", at, None, "O0")
        else:
            w.run.request("changed", "PATCH", at, body, "O0", drop=("settled_by",))
        w.run.alike("a token for it", lambda side: side.token_request(f"<<{who.symbol}>>", f"<<{who.symbol}.secret>>"))
    w.run.unsettle()

    def after():
        more = json.dumps(messages.envelope(w.ids, producer.system_ids[0], "asset.note", {"n": 2}))
        w.run.request(f"after {change}", "POST", publish, more, producer.symbol)
        w.run.request(f"what it had sent, after {change}", "POST", publish, message, producer.symbol)
        w.run.request(f"after {pause}", "GET", f"{pull}?max=1&visibility=1", None, consumer.symbol)
        w.run.request(f"after {pause}", "POST", pull.replace("/messages", "/ack"), {"receipt_handles": ["h"]}, consumer.symbol)
        for kind, who, body in (("producers", producer, change), ("consumers", consumer, pause)):
            if body is not None:
                w.run.request("deleted", "DELETE", f"{tenant(workspace)}/{kind}/<<{who.symbol}>>", None, "O0")
    w.later.append(after)


def secrets(w):
    at, connection = a_connection(w)
    symbol = f"{connection.symbol}.{w.symbol('s')}"
    made = w.run.made("a secret", f"{at}/secrets", None, {"secret_id": symbol, "client_secret": symbol + ".secret"})
    if not made:
        gone = connection.secrets.pop(w.rng.randrange(len(connection.secrets)))
        w.run.request("a secret deleted", "DELETE", f"{at}/secrets/<<{gone}>>", None, "O0")
        w.run.request("again", "DELETE", f"{at}/secrets/<<{gone}>>", None, "O0")
        lost = f"{gone}.secret" if gone + ".secret" in w.run.a.names else f"{connection.symbol}.secret"
        w.run.alike("a token by what is gone", lambda side: side.token_request(f"<<{connection.symbol}>>", f"<<{lost}>>"))
        if connection.secrets:
            left = connection.secrets[0] + ".secret"
            for side in (w.run.a, w.run.b):
                if left in side.names:
                    side.names[f"{connection.symbol}.secret"] = side.names[left]
        return
    connection.secrets.append(symbol)
    w.run.alike("a token by it", lambda side: side.token_request(f"<<{connection.symbol}>>", f"<<{symbol}.secret>>"))


def operators(w):
    if len(w.operators) < 2:
        symbol = w.symbol("O")
        if w.run.made("an operator", "/admin/operators", {"name": f"operator {symbol}"},
                      {"client_id": symbol, "client_secret": symbol + ".secret", "secret_id": symbol + ".s1"}):
            w.operators.append(symbol)
            w.run.request("by the new one", "GET", f"/admin/operators/<<{symbol}>>", None, symbol)
        return
    symbol = w.operators.pop(0)
    at = f"/admin/operators/<<{symbol}>>"
    w.run.request("changed", "PATCH", at, {"name": "Other"}, "O0")
    w.run.request("disabled", "PATCH", at, {"disabled": True}, "O0")
    w.run.request("by the disabled", "GET", at, None, symbol)
    w.run.request("deleted", "DELETE", at, None, "O0")
    w.run.request("by the deleted", "GET", "/admin/tenants", None, symbol)


def not_empty(w):
    w.run.request("a workspace with connections", "DELETE", tenant(w.rng.choice([x for x in w.workspaces if x.producers])), None, "O0")


def no_right(w):
    _, producer = w.any_producer()
    _, consumer = w.any_consumer()
    who, headers = w.rng.choice([(None, {}), (producer.symbol, {}), (consumer.symbol, {}), (None, {"authorization": "Bearer x.y.z"})])
    method, to = w.rng.choice([("GET", "/admin/tenants"), ("POST", "/admin/tenants"), ("GET", tenant(w.any_workspace())), ("DELETE", tenant(w.any_workspace())),
                               ("GET", "/admin/audit"), ("POST", "/admin/operators")])
    w.run.request("by somebody who may not", method, to, {} if method == "POST" else None, who, headers)


# -- what happened ----------------------------------------------------------------------------------------------------------------


def queue(w):
    workspace, consumer = w.any_consumer()
    w.run.request("a queue", "GET", f"{tenant(workspace)}/consumers/<<{consumer.symbol}>>/queue", None, "O0", lag=DIED,
                  drop=("oldest_age_seconds", "queue_url"))


def dead(w, workspace, consumer):
    """The dead letters, in no order: that of their deaths is another than that of their arrivals."""
    def shape(body):
        for message in body["messages"]:
            message["message_id"] = message["envelope"]["message_id"].lower()
        return member_of("messages")(body)
    one, _ = w.run.request("dead letters", "GET", f"{tenant(workspace)}/consumers/<<{consumer.symbol}>>/dead-letters?max=100", None, "O0", lag=DIED, shape=shape)
    return [m["envelope"]["message_id"] for m in one.body["messages"]]


def dead_letters(w):
    workspace, consumer = w.any_consumer()
    dead(w, workspace, consumer)


def job(w, workspace, consumer, kind, body):
    """A job, to its end."""
    symbol = w.symbol("J")
    made = w.run.made(f"a {kind}", f"{tenant(workspace)}/consumers/<<{consumer.symbol}>>/{kind}", body, {"job_id": symbol}, drop=("state", "started_at"))
    if not made:
        return
    workspace.jobs.append(symbol)

    def over(side):
        end = time.monotonic() + ARCHIVED
        while True:
            answer = side.send("GET", f"{tenant(workspace)}/jobs/<<{symbol}>>", None, None, "O0")
            if answer.status != 200 or answer.body["state"] in ("done", "failed", "cancelled") or time.monotonic() > end:
                return answer
            time.sleep(0.1)
    w.run.alike(f"a {kind} that is over", over)


def redrive(w):
    for _ in range(5):
        workspace, consumer = w.any_consumer()
        if consumer.rejected or consumer.max_receives < 5:
            break
    letters = dead(w, workspace, consumer)
    body = {}
    if letters and w.rng.random() < 0.5:
        body = {"message_ids": [*w.rng.sample(letters, min(2, len(letters))), *([w.ids.next()] if w.rng.random() < 0.3 else [])]}
    job(w, workspace, consumer, "redrives", body)


def replay(w):
    workspace, consumer = w.any_consumer()
    now = time.time()
    marks = [*w.marks, now]
    began, ends = sorted(w.rng.sample([w.began, *marks], 2)) if len(marks) > 1 else (w.began, now)
    def written(t):
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(t)) + f".{int(t % 1 * 1000):03}Z"
    body = {"from": written(began), "to": w.rng.choice([written(ends), "2099-01-01T00:00:00Z"])}
    choice = w.rng.randrange(4)
    if choice == 0:
        body["message_types"] = w.rng.choice([["telling.*"], ["story.context", "asset.note"]])
    elif choice == 1 and workspace.stories:
        body["story_ids"] = list(workspace.stories)[:2]
    elif choice == 2 and workspace.correlations:
        body["correlation_ids"] = workspace.correlations[:3]
    job(w, workspace, consumer, "replays", body)


def mark(w):
    """A time between two messages."""
    time.sleep(0.02)
    w.marks.append(time.time())
    time.sleep(0.02)


def jobs(w):
    workspace = w.any_workspace()
    if workspace.jobs and w.rng.random() < 0.5:
        w.run.request("a job that is over", "DELETE", f"{tenant(workspace)}/jobs/<<{w.rng.choice(workspace.jobs)}>>", None, "O0")
    elif w.rng.random() < 0.3:
        w.run.request("no job", w.rng.choice(["GET", "DELETE"]), f"{tenant(workspace)}/jobs/{w.rng.choice(['j-no-such', 'j' + 'a' * 20, 'x'])}", None, "O0")
    else:
        w.run.request("jobs", "GET", f"{tenant(workspace)}/jobs?limit=1000", None, "O0")


def activity(w):
    workspace = w.any_workspace()
    query = w.rng.choice(["", "", "&rule=message_id.reused", f"&producer=<<{workspace.producers[0].symbol}>>" if workspace.producers else ""])
    w.run.request("activity", "GET", f"{tenant(workspace)}/activity?limit=1000{query}", None, "O0", lag=NOTED)


def stories(w):
    workspace = w.any_workspace()
    known = list(workspace.stories)
    one = w.rng.choice([None, *known, "no-such-story", *workspace.correlations[:2]])
    if one is None:
        w.run.request("stories", "GET", f"{tenant(workspace)}/stories?limit=1000", None, "O0", lag=ARCHIVED)
    else:
        w.run.request("a story", "GET", f"{tenant(workspace)}/stories/{one}?limit=1000", None, "O0", lag=ARCHIVED)


def way(w):
    workspaces = [x for x in w.workspaces if x.sent]
    if not workspaces:
        return
    workspace = w.rng.choice(workspaces)
    message_id = w.rng.choice([json.loads(w.rng.choice(workspace.sent)[1])["message_id"]] * 5 + [w.ids.next(), "x"])

    def known_to_both(body):
        """A queue of SQS cannot be looked at: what waits, is in flight or was acknowledged is known on one machine alone."""
        for consumer in body["consumers"]:
            consumer["deliveries"] = [d for d in consumer["deliveries"] if d["state"] in ("dead_lettered", "not_routed")]
        return member_of("consumers")(body)
    w.run.request("a message's way", "GET", f"{tenant(workspace)}/messages/{message_id}", None, "O0", lag=ARCHIVED, shape=known_to_both)


def audit(w):
    """The newest writes of this run: others may write too."""
    def own(side):
        answer = side.send("GET", "/admin/audit?limit=1000", None, None, "O0")
        entries = [e for e in answer.body["entries"] if all(part in side.symbols for part in e["subject"])]
        return side.value(entries[:w.writes], None, set())
    w.run.check("audit", *w.run.both(own))


def purge(w):
    workspace, consumer = w.any_consumer()
    if not consumer.purged:
        consumer.purged = True
        w.run.request("purged", "POST", f"{tenant(workspace)}/consumers/<<{consumer.symbol}>>/purge", None, "O0", drop=("purged",))
        consumer.held.clear()
        consumer.spent.clear()
        consumer.rejected.clear()
