"""What consumers do."""

import time

HIDDEN = 3600
# What arrives in a queue is there after so long.
ARRIVAL = 10


def path(workspace, consumer):
    return f"/tenants/<<{workspace.symbol}>>/consumers/<<{consumer.symbol}>>"


def visible(w, workspace, consumer):
    """How many messages wait: what the first bus says, which counts exactly."""
    answer = w.run.a.send("GET", f"/admin{path(workspace, consumer)}/queue", None, None, "O0")
    return answer.body["visible"]


def receive_all(side, where, who, visibility, at_least=None):
    """Receives until nothing comes any more; with `at_least`, waits for so many."""
    got, end = [], time.monotonic() + ARRIVAL
    while True:
        answer = side.send("GET", f"{where}/messages?max=10&visibility={visibility}", None, None, who)
        if answer.status != 200:
            return answer, got
        got += answer.body["messages"]
        if not answer.body["messages"] and (at_least is None or len(got) >= at_least or time.monotonic() > end):
            return answer, got
        if not answer.body["messages"]:
            time.sleep(0.1)


def by_correlation(side, messages):
    """Messages by what their order is promised in: those that came by a job land behind what was there, in no order with others."""
    groups = {}
    for message in messages:
        mark = message.get("redelivery", "")
        group = groups.setdefault(f"{message['correlation_id'].lower()} {side.symbols.get(mark.partition(':')[2], mark)}", [])
        group.append(side.value({k: v for k, v in message.items() if k != "receipt_handle"}, None, set()))
    for name, group in groups.items():
        if not name.endswith(" "):
            group.sort(key=lambda m: (m["envelope"]["message_id"], m["receive_count"]))
    return groups


def named(w, consumer, one, two):
    """The names of the handles of what both have received, in the first one's order."""
    handles = []
    for side, messages in ((w.run.a, one), (w.run.b, two)):
        for message in messages:
            mark = side.symbols.get(message.get("redelivery", "").partition(":")[2], "")
            name = ".".join(["H", consumer.symbol, message["envelope"]["message_id"].lower(), str(message["receive_count"]), mark])
            side.learn(name, message["receipt_handle"])
            if side is w.run.a:
                handles.append((name, message["correlation_id"].lower(), message["envelope"]["message_id"]))
    return [h for h in handles if h[0] in w.run.b.names]


def collect(w, title, workspace, consumer, visibility=HIDDEN):
    """Everything that can be received now, from both; how the handles are called."""
    where = path(workspace, consumer)
    last, one = receive_all(w.run.a, where, consumer.symbol, visibility)
    other, two = receive_all(w.run.b, where, consumer.symbol, visibility, len(one))
    w.run.check(f"{title}: {where}", {"status": last.status, "messages": by_correlation(w.run.a, one)},
                {"status": other.status, "messages": by_correlation(w.run.b, two)})
    return named(w, consumer, one, two)


def settle_handles(w, title, verb, workspace, consumer, handles, **members):
    """One acknowledgement, release or rejection of handles by their names."""
    body = {"receipt_handles": [f"<<{h}>>" for h in handles], **members}

    def ask(side):
        end = time.monotonic() + 30
        while True:
            answer = side.send("POST", f"{path(workspace, consumer)}/{verb}", body, None, consumer.symbol)
            late = answer.status == 200 and any(f["rule"] == "message.not_archived" for f in answer.body["failed"])
            if not late or time.monotonic() > end:
                return answer
            time.sleep(0.2)
    return w.run.alike(f"{title}: {verb} {len(handles)}", ask)


def drain(w, workspace, consumer):
    """Receives and acknowledges everything."""
    where = path(workspace, consumer)

    def all_of(side, at_least):
        got, end = [], time.monotonic() + ARRIVAL
        while True:
            answer = side.send("GET", f"{where}/messages?max=10&visibility={HIDDEN}", None, None, consumer.symbol)
            some = answer.body["messages"]
            if not some and (len(got) >= at_least or time.monotonic() > end):
                return got
            got += some
            if some:
                handles = {"receipt_handles": [m["receipt_handle"] for m in some]}
                side.send("POST", f"{where}/ack", handles, None, consumer.symbol)
            else:
                time.sleep(0.1)
    one = all_of(w.run.a, 0)
    two = all_of(w.run.b, len(one))
    w.run.check(f"drained: {where}", by_correlation(w.run.a, one), by_correlation(w.run.b, two))


def receive(w):
    workspace, consumer = w.any_consumer()
    if visible(w, workspace, consumer) > 10:
        drain(w, workspace, consumer)
    else:
        consumer.held += collect(w, "received", workspace, consumer)


def some_held(w, fewest=1):
    found = [(x, c) for x in w.workspaces for c in x.consumers if len(c.held) >= fewest]
    if not found:
        receive(w)
        found = [(x, c) for x in w.workspaces for c in x.consumers if len(c.held) >= fewest]
    return w.rng.choice(found) if found else None


def choose(w, consumer):
    """Some of what is held, in its order: of each story the first ones, as a consumer does it that keeps its order."""
    groups, chosen = {}, []
    for handle in consumer.held:
        groups.setdefault(handle[1], []).append(handle)
    for group in groups.values():
        chosen += group[:w.rng.randint(0, len(group))]
    return chosen[:10] or consumer.held[:1]


def forget(consumer, handles):
    consumer.held = [h for h in consumer.held if h not in handles]
    consumer.spent += [h[0] for h in handles]


def acknowledge(w):
    if found := some_held(w):
        workspace, consumer = found
        chosen = choose(w, consumer)
        names = [h[0] for h in chosen]
        settle_handles(w, "acknowledged", "ack", workspace, consumer, names)
        if w.rng.random() < 0.3:
            settle_handles(w, "acknowledged again", "ack", workspace, consumer, names)
        forget(consumer, chosen)


def give_back(w):
    """The later ones of a story before the first: so that nothing overtakes."""
    if found := some_held(w):
        workspace, consumer = found
        correlation = w.rng.choice(consumer.held)[1]
        chosen = [h for h in consumer.held if h[1] == correlation][-10:]
        delay = w.rng.choice([0, 0, 0, 0, HIDDEN])
        settle_handles(w, "given back", "nack", workspace, consumer, [h[0] for h in chosen], delay_seconds=delay)
        if not delay:
            forget(consumer, chosen)


def reject(w):
    if found := some_held(w):
        workspace, consumer = found
        chosen = choose(w, consumer)[:3]
        names = [h[0] for h in chosen]
        settle_handles(w, "rejected", "reject", workspace, consumer, names, reason=f"no such desk {w.rng.randrange(9)}")
        if w.rng.random() < 0.3:
            settle_handles(w, "rejected again", "reject", workspace, consumer, names, reason="again")
        consumer.held = [h for h in consumer.held if h not in chosen]
        consumer.rejected += names


def bad_handles(w):
    workspace, consumer = w.any_consumer()
    others = [h[0] for x in w.workspaces for c in x.consumers if c is not consumer for h in c.held]
    pool = ["no-such-handle", "", "AAAA", "x" * 5000, "é", *[f"<<{h}>>" for h in w.rng.sample(others, min(2, len(others)))]]
    handles = [w.rng.choice(pool) for _ in range(w.rng.randint(1, 4))]
    verb = w.rng.choice(["ack", "nack", "reject"])
    body = {"receipt_handles": handles, **({"reason": "r"} if verb == "reject" else {})}
    w.run.request("handles that are none", "POST", f"{path(workspace, consumer)}/{verb}", body, consumer.symbol)


def spent_handles(w):
    """What was acknowledged or given back before."""
    workspace, consumer = w.any_consumer()
    if consumer.spent:
        names = w.rng.sample(consumer.spent, min(3, len(consumer.spent)))
        verb, members = w.rng.choice([("nack", {}), ("nack", {"delay_seconds": 10}), ("reject", {"reason": "spent"})])
        settle_handles(w, "spent before", verb, workspace, consumer, names, **members)


def lapse(w):
    """Received and left alone: everything comes again."""
    workspace, consumer = w.any_consumer()
    if not 0 < visible(w, workspace, consumer) <= 10:
        return receive(w)
    handles = collect(w, "received for a moment", workspace, consumer, 1)
    time.sleep(2.2)
    if handles:
        settle_handles(w, "too late", w.rng.choice(["ack", "nack"]), workspace, consumer, [h[0] for h in handles[:10]])


def attempt(w):
    """A receive that is repeated with its attempt."""
    workspace, consumer = w.any_consumer()
    if visible(w, workspace, consumer) > 10:
        return drain(w, workspace, consumer)
    # what was published is there for both, so that the first receive has it
    waiting = visible(w, workspace, consumer)
    end = time.monotonic() + ARRIVAL
    while time.monotonic() < end:
        answer = w.run.b.send("GET", f"/admin{path(workspace, consumer)}/queue", None, None, "O0")
        if answer.body["visible"] >= waiting:
            break
        time.sleep(0.1)
    query = f"max=10&visibility={HIDDEN}&attempt=a{w.rng.randrange(10**6)}"
    for title in ("with an attempt", "with the same attempt"):
        one, two = w.run.both(lambda side: side.send("GET", f"{path(workspace, consumer)}/messages?{query}", None, None, consumer.symbol))
        found = [by_correlation(side, a.body["messages"]) for side, a in zip((w.run.a, w.run.b), (one, two))]
        w.run.check(title, *found)
    consumer.held += named(w, consumer, one.body["messages"], two.body["messages"])


def bad_receive(w):
    workspace, consumer = w.any_consumer()
    query = w.rng.choice(["max=0", "max=11", "max=x", "max=", "wait=21", "wait=-1", "visibility=0", "visibility=43201", "max=1&max=2", "attempt=",
                          "attempt=a+b", "attempt=" + "a" * 129, "max=1.0", "max=%31%31", "wait=1e1", "max=0&wait=99"])
    w.run.request("a wrong parameter", "GET", f"{path(workspace, consumer)}/messages?{query}", None, consumer.symbol)


def bad_body(w):
    workspace, consumer = w.any_consumer()
    verb = w.rng.choice(["ack", "nack", "reject"])
    body = w.rng.choice(['', '{', '[]', '{}', '{"receipt_handles":[]}', '{"receipt_handles":"x"}', '{"receipt_handles":[1]}', '{"receipt_handles":["h"],"x":1}',
                         '{"receipt_handles":["h"],"delay_seconds":-1}', '{"receipt_handles":["h"],"delay_seconds":43201}', '{"receipt_handles":["h"],"reason":""}',
                         '{"receipt_handles":["h"],"receipt_handles":["h"]}', '{"receipt_handles":["h"],"delay_seconds":1.5}', '{"receipt_handles":null}',
                         '{"receipt_handles":["h"],"reason":"' + "y" * 1001 + '"}', '{"receipt_handles":[' + ",".join(['"h"'] * 11) + ']}'])
    w.run.request("a wrong body", "POST", f"{path(workspace, consumer)}/{verb}", body, consumer.symbol)


def no_right(w):
    workspace, consumer = w.any_consumer()
    other, second = w.any_consumer()
    _, producer = w.any_producer()
    who = w.rng.choice([None, producer.symbol, "O0", second.symbol if second is not consumer else None])
    verb, tail = w.rng.choice([("GET", "messages"), ("POST", "ack"), ("POST", "nack"), ("GET", "skills"), ("POST", "reject")])
    where = w.rng.choice([path(workspace, consumer)] * 3 + [f"/tenants/<<{workspace.symbol}>>/consumers/c-no-such", f"/tenants/w-no-such/consumers/<<{consumer.symbol}>>"])
    w.run.request("by somebody who may not", verb, f"{where}/{tail}", None if verb == "GET" else {"receipt_handles": ["h"]}, who)


def skills(w):
    workspace, consumer = w.any_consumer()
    w.run.request("skills", "GET", f"{path(workspace, consumer)}/skills", None, consumer.symbol)
