"""Messages, right and wrong."""

import copy
import json
import pathlib
import uuid

STORIES = pathlib.Path(__file__).resolve().parents[2] / "events" / "story"
TELLING = json.loads((STORIES / "telling-started.json").read_text())["payload"]
AUDIT = {"audit_id": "0199b3d0-7777-7000-8000-000000000007", "action": "CLEARED", "target": {"kind": "ASSET", "id": "a1"},
         "actor": {"actor_id": "desk-1", "actor_type": "HUMAN"}, "recorded_at": "2026-10-05T06:30:00Z"}
PAYLOADS = {"asset.note": {"text": "note"}, "asset.ingested": {"size": 12}, "telling.started": TELLING, "system.audit": AUDIT,
            "skill.run.completed": {"n": 1}}
TYPES = list(PAYLOADS)


class Ids:
    """Ids that follow from the run's name, so that both buses get the same and no other run has them."""

    def __init__(self, run):
        self.space, self.count = uuid.uuid5(uuid.NAMESPACE_URL, f"storybus:{run}"), 0

    def next(self):
        self.count += 1
        return str(uuid.uuid5(self.space, str(self.count)))


def envelope(ids, system_id, message_type, payload, correlation_id=None, **members):
    return {"som_version": "1.0.0", "message_id": ids.next(), "correlation_id": correlation_id or ids.next(),
            "message_type": message_type, "timestamp": "2026-11-30T10:00:00Z",
            "originating_system": {"system_id": system_id, "system_type": "ncs"}, "topic": "som." + message_type,
            "payload": payload, **members}


def snapshot(story_id, n, **members):
    payload = {"story_id": story_id, "slug": "ALIKE", "headline": f"Headline {n}", "story_type": "ACTIVE",
               "lifecycle": {"phase": "DEVELOPING", "phase_entered_at": "2026-09-11T10:00:00Z"}, "sequence_number": n,
               "updated_at": f"2026-09-{1 + n // 1440 % 28:02}T{n // 60 % 24:02}:{n % 60:02}:00Z"}
    payload.update(members)
    return {k: v for k, v in payload.items() if v is not None}


def places(value, path=()):
    """Every place in a JSON value, but for its root."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in inside:
        yield (*path, key)
        yield from places(child, (*path, key))


WRONG = ["", "x", "Ω", "a b", "2026-02-30T00:00:00Z", "2.0.0", "0.9.9", "1.7.0", "telling.begun", "story.context", 0, -1, 1.5, 10**20, True, None,
         [], {}, ["x"], {"x": 1}, "y" * 300]


def spoilt(rng, message):
    """A message with one to three places changed: most of them are wrong then."""
    message = copy.deepcopy(message)
    for _ in range(rng.randint(1, 3)):
        path = rng.choice(list(places(message)))
        parent = message
        for key in path[:-1]:
            parent = parent[key]
        kind = rng.randrange(4)
        if kind == 0:
            del parent[path[-1]]
        elif kind == 1 and isinstance(parent, dict):
            parent[rng.choice(["surplus", "x-y", "Slug", "extensions"])] = rng.choice(WRONG)
        else:
            parent[path[-1]] = rng.choice(WRONG)
        if not message:
            break
    return message


def broken(rng, message):
    """Bytes that are no message, and what is wrong with them."""
    text = json.dumps(message)
    data = text.encode()
    ways = {
        "cut": lambda: data[:rng.randrange(1, len(data))],
        "trailing": lambda: data + b"{}",
        "two": lambda: data + b"\n" + data,
        "BOM": lambda: b"\xef\xbb\xbf" + data,
        "NaN": lambda: text.replace('"1.0.0"', "NaN", 1).encode(),
        "empty": lambda: b"",
        "blank": lambda: b" \n\t ",
        "array": lambda: b"[" + data + b"]",
        "text": lambda: b'"x"',
        "null": lambda: b"null",
        "surrogate": lambda: text.replace('"1.0.0"', '"\\ud800"', 1).encode(),
        "not UTF-8": lambda: data.replace(b"1.0.0", b"1.0.\xff", 1),
        "repeated": lambda: text.replace('"topic"', '"topic": "som.x", "topic"', 1).encode(),
        "repeated, escaped": lambda: text.replace('"topic"', '"to\\u0070ic": "som.x", "topic"', 1).encode(),
        "illegal": lambda: text.replace("som.", "som.\ufffe", 1).encode(),
        "control": lambda: text.replace("som.", "som.\x01", 1).encode(),
        "escaped illegal": lambda: text.replace('"topic": "som.', '"topic": "som.\\u0001', 1).encode(),
        "deep": lambda: text.replace('"payload": {', '"payload": {"deep": ' + "[" * 200 + "]" * 200 + ", ", 1).encode(),
        "too large": lambda: text.replace('"payload": {', '"payload": {"long": "' + "y" * 240_000 + '", ', 1).encode(),
        "single quotes": lambda: text.replace('"', "'").encode(),
    }
    name = rng.choice(list(ways))
    return name, ways[name]()


def rewritten(rng, text):
    """The same JSON value in other bytes."""
    value = json.loads(text)
    return rng.choice([
        lambda: json.dumps(dict(reversed(list(value.items())))),
        lambda: json.dumps(value, indent=2),
        lambda: json.dumps(value, separators=(",", ":")),
        lambda: text.replace("topic", "to\\u0070ic", 1),
        lambda: json.dumps(value, ensure_ascii=False),
    ])()
