"""What producers do."""

import json

import messages


def path(workspace):
    return f"/tenants/<<{workspace.symbol}>>/messages"


def publish(w, title, workspace, producer, text, headers=None, to=None):
    one, two = w.run.request(title, "POST", to or path(workspace), text, producer.symbol, headers)
    return one.status == two.status == 202


def event(w):
    workspace, producer = w.any_producer()
    text = json.dumps(w.event(workspace, producer))
    to = "/jwt/messages" if w.rng.random() < 0.2 else None
    if publish(w, "an event", workspace, producer, text, to=to):
        workspace.sent.append((producer, text))


def snapshot(w):
    workspace, producer = w.any_producer()
    story, extra, message = w.snapshot(workspace, producer)
    text = json.dumps(message)
    if publish(w, "a snapshot", workspace, producer, text):
        workspace.sent.append((producer, text))
        workspace.stories[story][1:] = [message["payload"]["sequence_number"], extra]


def stale(w):
    """A snapshot that breaks one or more rules of the story's order, or is tolerated."""
    workspace, producer = w.any_producer()
    story, extra, message = w.snapshot(workspace, producer)
    last = workspace.stories[story][1]
    payload = message["payload"]
    for _ in range(w.rng.randint(1, 2)):
        change = w.rng.randrange(6)
        if change == 0:
            payload["sequence_number"] = max(0, last - w.rng.randint(0, 2))
        elif change == 1:
            payload["updated_at"] = "2020-01-01T00:00:00Z"
        elif change == 2:
            payload.pop(w.rng.choice(["newsroom_id", "lifecycle"]), None)
        elif change == 3:
            message["correlation_id"] = w.ids.next()
        elif change == 4:
            payload["sequence_number"] = last + 5
        else:
            payload["assets"] = [{"asset_id": w.rng.choice("ab"), "asset_type": w.rng.choice(["VIDEO", "AUDIO"]), "status": "READY"}]
    text = json.dumps(message)
    if publish(w, "a snapshot out of order", workspace, producer, text):
        workspace.sent.append((producer, text))
        known = ("newsroom_id", "assets", "lifecycle")
        workspace.stories[story][1:] = [payload["sequence_number"], {**extra, **{k: payload[k] for k in known if k in payload}}]


def some_sent(w):
    workspaces = [x for x in w.workspaces if x.sent]
    if not workspaces:
        event(w)
        return None
    workspace = w.rng.choice(workspaces)
    producer, text = w.rng.choice(workspace.sent)
    return (workspace, producer, text) if producer in workspace.producers else None


def again(w):
    if found := some_sent(w):
        workspace, producer, text = found
        publish(w, "sent again", workspace, producer, text if w.rng.random() < 0.5 else messages.rewritten(w.rng, text))


def reused(w):
    if not (found := some_sent(w)):
        return
    workspace, producer, text = found
    message = json.loads(text)
    change = w.rng.randrange(4)
    if change == 0:
        message["timestamp"] = "2026-11-30T10:00:01Z"
    elif change == 1:
        message["message_id"] = message["message_id"].upper()
    elif change == 2:
        message["extensions"] = {"com.acme.x": 1}
    else:
        message["topic"] = "som.other"
    publish(w, "an id used again", workspace, producer, json.dumps(message))


def spoilt(w):
    workspace, producer = w.any_producer()
    message = w.event(workspace, producer) if w.rng.random() < 0.5 else w.snapshot(workspace, producer)[2]
    story = message["payload"].get("story_id")
    text = json.dumps(messages.spoilt(w.rng, message))
    kind = w.rng.choice(["messages", "messages", "validate"])
    if publish(w, "a message that is wrong", workspace, producer, text, to=f"/tenants/<<{workspace.symbol}>>/{kind}") and kind == "messages":
        workspace.stories.pop(story, None)


def broken(w):
    workspace, producer = w.any_producer()
    way, data = messages.broken(w.rng, w.event(workspace, producer))
    publish(w, f"no message ({way})", workspace, producer, data)


def grants(w):
    workspace, producer = w.any_producer()
    message = w.event(workspace, producer)
    change = w.rng.randrange(3)
    if change == 0:
        message["originating_system"]["system_id"] = "someone-else"
    elif change == 1:
        message.update(message_type="story.context", payload=messages.snapshot("s", 1))
    else:
        message.update(message_type="asset.other", topic="som.asset.other", payload={})
    publish(w, "a message not granted", workspace, producer, json.dumps(message))


def key(w):
    workspace, producer = w.any_producer()
    message = w.event(workspace, producer)
    value = w.rng.choice([message["message_id"], f'"{message["message_id"]}"', message["message_id"].upper(), w.ids.next(), "x", '""', "", '"x'])
    text = json.dumps(message)
    if publish(w, "with an Idempotency-Key", workspace, producer, text, {"idempotency-key": value}):
        workspace.sent.append((producer, text))


def encoding(w):
    workspace, producer = w.any_producer()
    value = w.rng.choice(["gzip", "identity", "br, identity", "GZIP"])
    text = json.dumps(w.event(workspace, producer))
    if publish(w, "with a Content-Encoding", workspace, producer, text, {"content-encoding": value}):
        workspace.sent.append((producer, text))


def no_right(w):
    """As somebody who may not."""
    workspace, producer = w.any_producer()
    other, consumer = w.any_consumer()
    text = json.dumps(w.event(workspace, producer))
    who, headers = w.rng.choice([
        (None, {}), (None, {"authorization": "Bearer x.y.z"}), (None, {"authorization": "Basic abc"}), (None, {"authorization": "Bearer"}),
        (None, {"authorization": "bearer " + "x" * 50}), (consumer.symbol, {}), ("O0", {}), ("other", {})])
    if who == "other":
        elsewhere = [(x, p) for x in w.workspaces if x is not workspace for p in x.producers]
        who = w.rng.choice(elsewhere)[1].symbol if elsewhere else None
    to = w.rng.choice([path(workspace), "/jwt/messages", f"/tenants/<<{workspace.symbol}>>/validate", "/tenants/w-no-such/messages"])
    if to == "/jwt/messages" and who and who.startswith("P"):
        to = path(workspace)
    w.run.request("by somebody who may not", "POST", to, text, who, headers)


def validate(w):
    workspace, producer = w.any_producer()
    message = w.event(workspace, producer) if w.rng.random() < 0.5 else w.snapshot(workspace, producer)[2]
    publish(w, "a dry run", workspace, producer, json.dumps(message), to=f"/tenants/<<{workspace.symbol}>>/validate")


def state(w):
    if not (found := some_sent(w)):
        return
    workspace, producer, text = found
    message_id = w.rng.choice([json.loads(text)["message_id"]] * 4 + [w.ids.next(), "x", json.loads(text)["message_id"].upper()])
    who = w.rng.choice([producer, *workspace.producers]).symbol
    w.run.request("what became of it", "GET", f"{path(workspace)}/{message_id}", None, who)
