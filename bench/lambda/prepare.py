#!/usr/bin/env python3
"""prepare.py OUT BINARIES SOM   Writes into OUT what the harness gives our functions.

Events, a token and the key that it is checked with (a new pair each time), the fixed answers of the AWS stand-in, and for each
measurement a file NAME.sh that says how to start the function. BINARIES is where the functions lie, SOM the folder of the SOM 1.0
examples. It needs openssl (3.0 or later) for the Ed25519 key."""

import base64
import json
import pathlib
import shlex
import subprocess
import sys
import time

WORKSPACE, PRODUCER, CONSUMER = "wbench", "pbench", "cbench"
ISSUER = "https://bus.example/v1/"
ACCOUNT, REGION, PREFIX = "123456789012", "us-east-1", "bus"
SECRET = "a-secret-of-the-benchmark"
# argon2id of SECRET with the parameters of crates/lambda
SECRET_HASH = "$argon2id$v=19$m=19456,t=2,p=1$7fhiQ5mNBQgPdrei8L0YUg$07WlENGa7kR8bc8R/qJk0a9TJ2O1bY31spgVbswAdKQ"
BEGUN = 1_780_000_000_000
EVENT_BYTES = 3_800
FAMILIES = {"story.context": "story-context", "telling.started": "telling-event"}
BATCH = 10


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def b64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def openssl(*args, stdin=None):
    return subprocess.run(["openssl", *args], input=stdin, stdout=subprocess.PIPE, check=True).stdout


class Keys:
    """An Ed25519 key pair of this run."""

    def __init__(self, out):
        self.file = out / "key.pem"
        self.message = out / "to-sign"
        self.file.touch(mode=0o600)
        self.file.write_bytes(openssl("genpkey", "-algorithm", "ed25519"))
        self.private = openssl("pkey", "-in", str(self.file), "-outform", "DER")
        self.public = b64url(openssl("pkey", "-in", str(self.file), "-pubout", "-outform", "DER")[-32:])

    def token(self, connection, kind, scope):
        now = int(time.time())
        claims = {
            "iss": ISSUER, "sub": connection, "client_id": connection, "aud": ISSUER, "exp": now + 86_400, "iat": now,
            "jti": "benchmark", "scope": scope, "kind": kind, "tenant": WORKSPACE,
        }
        header = {"typ": "at+jwt", "alg": "EdDSA", "kid": "bench"}
        text = ".".join(b64url(compact(part).encode()) for part in (header, claims))
        self.message.write_text(text)
        signature = openssl("pkeyutl", "-sign", "-rawin", "-inkey", str(self.file), "-in", str(self.message))
        return f"{text}.{b64url(signature)}"


def connection(id, role):
    secret = {"id": "sbench", "hash": SECRET_HASH, "created_at": BEGUN}
    doc = {
        "id": id, "workspace": WORKSPACE, "name": "a benchmark's", "disabled": False, "created_at": BEGUN,
        "secrets": [secret], "role": role, "version": 1,
    }
    return {"pk": {"S": f"CONN#{id}"}, "sk": {"S": "-"}, "doc": {"S": compact(doc)}, "version": {"N": "1"}}


def attributes(message):
    return {
        "message_type": message["message_type"], "family": FAMILIES[message["message_type"]], "topic": message["topic"],
        "correlation_id": message["correlation_id"], "producer_id": PRODUCER,
        "system_id": message["originating_system"]["system_id"], "som_version": message["som_version"],
    }


def message_ids():
    return [f"0199a1c4-7a2e-7b31-8c55-4d2f9e6a{n:04x}" for n in range(BATCH)]


def queue_attributes(n, id):
    """What SQS says of a message."""
    return {
        "ApproximateFirstReceiveTimestamp": str(BEGUN + 50), "ApproximateReceiveCount": "1",
        "MessageDeduplicationId": f"{WORKSPACE}.{id}", "MessageGroupId": f"{WORKSPACE}.0199a1c4-0000-7000-8000-{n:012x}",
        "SenderId": "AIDAIT2UOQQY3AUEKVGXU", "SentTimestamp": str(BEGUN), "SequenceNumber": f"188{n:017}",
    }


def received(message):
    """The answer of a ReceiveMessage: ten messages."""
    messages = []
    for n, id in enumerate(message_ids()):
        named = attributes(message).items()
        messages.append({
            "MessageId": id, "ReceiptHandle": "A" * 400, "Body": compact(message | {"message_id": id}),
            "Attributes": queue_attributes(n, id),
            "MessageAttributes": {name: {"DataType": "String", "StringValue": value} for name, value in named},
        })
    return {"Messages": messages}


def handle(id):
    """A receipt handle as crates/aws/src/queues/handle.rs writes it."""
    parts = ["1", WORKSPACE, CONSUMER, id + "A" * 400, id, "1" * 20, id, BEGUN, BEGUN, 1, None]
    return b64url(compact(parts).encode())


def batch(message):
    """The event of a queue: ten messages of as many groups."""
    records = []
    for n, id in enumerate(message_ids()):
        named = attributes(message).items()
        records.append({
            "messageId": id, "receiptHandle": "A" * 400, "body": compact(message | {"message_id": id}),
            "attributes": queue_attributes(n, id),
            "messageAttributes": {
                name: {"stringValue": value, "dataType": "String", "stringListValues": [], "binaryListValues": []}
                for name, value in named
            },
            "md5OfBody": "0" * 32, "eventSource": "aws:sqs", "awsRegion": REGION,
            "eventSourceARN": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{PREFIX}-archive.fifo",
        })
    return {"Records": records}


def telling(envelope):
    """An event of the snapshot's size: a telling with as many transforms as it takes."""
    event = {key: value for key, value in envelope.items() if key not in ("payload", "modification_header")}
    event |= {"message_type": "telling.started", "topic": "som.telling.started.hurricane-2026-0911"}
    payload = {
        "message_type": "telling.started", "telling_id": "0190a000-0000-7000-8000-00000000bbb1",
        "link_id": "0190a000-0000-7000-8000-00000000aaa1", "exposure_start": "2026-07-08T18:00:00Z", "transforms": [],
    }
    event["payload"] = payload
    while len(compact(event)) < EVENT_BYTES:
        payload["transforms"].append({
            "transform_type": "TRIM", "params": {"time_range": "[4:0_34:0)"},
            "applied_by": {"actor_id": "social-desk-tool", "actor_type": "system"}, "applied_at": "2026-07-08T17:50:00Z",
        })
    return event


def request(method, path, body=None, content_type="application/json", query=""):
    """An event of an HTTP API, payload format 2.0."""
    headers = {
        "authorization": "Bearer {token}", "host": "bus.example.com", "user-agent": "bench/1",
        "x-amzn-trace-id": "Root=1-5e6722a7-cc56e8ea46db7ae02d4da47e", "x-forwarded-for": "203.0.113.7",
        "x-forwarded-port": "443", "x-forwarded-proto": "https",
    }
    event = {
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": query, "headers": headers,
        "requestContext": {
            "accountId": ACCOUNT, "apiId": "api-id", "domainName": "bus.example.com", "domainPrefix": "bus",
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "203.0.113.7", "userAgent": "bench/1"},
            "requestId": "JKJaXmPLvHcESHA=", "routeKey": "$default", "stage": "$default",
            "time": "10/Mar/2026:05:16:23 +0000", "timeEpoch": 1773119783220,
        },
        "isBase64Encoded": False,
    }
    if body is not None:
        headers["content-type"] = content_type
        headers["content-length"] = str(len(body.replace("{message_id}", "x" * 36).encode()))
        # API Gateway hands everything on as base64 that it does not take for text
        if content_type != "application/json":
            event["isBase64Encoded"] = True
            body = base64.b64encode(body.encode()).decode()
        event["body"] = body
    return event


def answers(keys, snapshot):
    """What AWS says to each operation."""
    producer = {
        "kind": "producer", "system_ids": [snapshot["originating_system"]["system_id"]], "message_types": ["*"],
        "role_arn": None, "rate": None,
    }
    consumer = {
        "kind": "consumer", "filter": {"message_types": [], "topic_prefixes": [], "sources": []}, "max_receives": 5,
        "visibility_seconds": 120, "reader_role_arn": None, "paused": False,
    }
    workspace = {
        "id": WORKSPACE, "name": "a benchmark's", "strict_message_types": False, "created_at": BEGUN, "version": 1,
    }
    public = {"kid": "bench", "public": keys.public}
    private = public | {"private": base64.b64encode(keys.private).decode()}
    before = "0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b06"
    sixteen = base64.b64encode(bytes(16)).decode()
    # What the snapshot's predecessor left.
    story = {
        "pk": {"S": f"STORY#{WORKSPACE}#{STORY}"}, "sk": {"S": "-"}, "begun_at": {"N": str(BEGUN)},
        "list_pk": {"S": f"STORIES#{WORKSPACE}"}, "list_sk": {"S": f"{BEGUN:013}000000{STORY}"}, "head": {"S": before}, "version": {"B": sixteen}, "story_id": {"S": snapshot["payload"]["story_id"]},
        "state": {"S": compact(STATE | {"c": snapshot["correlation_id"]})},
    }
    record = {
        "pk": {"S": f"REC#{WORKSPACE}#{before}"}, "sk": {"S": "-"}, "state": {"S": "PUBLISHED"}, "attempt": {"B": sixteen}, "hash": {"B": base64.b64encode(bytes(32)).decode()},
        "recorded_at": {"N": str(BEGUN)}, "published_at": {"N": str(BEGUN)}, "producer": {"S": PRODUCER},
        "story": {"B": sixteen}, "expires_at": {"N": "4000000000"},
    }
    return {
        "GetItem": [
            {"when": "CONN#" + PRODUCER, "body": {"Item": connection(PRODUCER, producer)}},
            {"when": "CONN#" + CONSUMER, "body": {"Item": connection(CONSUMER, consumer)}},
            {"when": "WORKSPACES", "body": {"Item": {"doc": {"S": compact(workspace)}, "version": {"N": "1"}}}},
            {"when": "\"KEYS\"", "body": {"Item": {"keys": {"S": compact({"keys": [public]})}, "version": {"S": "bench"}}}},
            {"when": f"REC#{WORKSPACE}#{before}", "body": {"Item": record}},
            {"body": {}},
        ],
        "TransactGetItems": {"body": {"Responses": [{}, {"Item": story}]}},
        "Query": {"body": {"Items": [], "Count": 0, "ScannedCount": 0}},
        "ReceiveMessage": {"body": received(snapshot)},
        "DeleteMessageBatch": {"body": {"Successful": [{"Id": str(n)} for n in range(BATCH)], "Failed": []}},
        "GetSecretValue": {"body": {"Name": "keys", "SecretString": compact({"keys": [private]})}},
    }


# What the ledger keeps of a story whose last snapshot was the example's predecessor: crates/som/src/story/state.rs.
STATE = {
    "n": "6", "u": "2026-09-11T16:40:00Z",
    "m": [
        "assertions", "assets", "compliance", "content_refs", "editorial_gates", "editorial_source", "extensions", "headline",
        "newsroom_id", "priority", "sequence_number", "slug", "story_id", "story_meaning", "story_type", "updated_at",
    ],
    "a": "IBemT3QuwEsixwoxki2K8QYXjUEPa8uFIjBru3qsolw3UfHMQoNSadCVzmZfesR0wE7to-fU1pa9ITtHtKpXOcm29MIdTqjt",
    "t": "ACTIVE", "r": "spO4B31QOJC3WxEZCnZlQA",
}
# The digest of its id.
STORY = "d272534e267747f320895f08d00d93e8"


def main():
    out, binaries, som = (pathlib.Path(arg).resolve() for arg in sys.argv[1:4])
    out.mkdir(parents=True, exist_ok=True)
    snapshot = json.loads((som / "examples/story-context/hurricane-beat6-envelope.json").read_text())
    keys = Keys(out)
    tokens = {
        "producer": keys.token(PRODUCER, "producer", "sombus/publish"),
        "consumer": keys.token(CONSUMER, "consumer", "sombus/consume"),
    }
    for name, token in tokens.items():
        (out / f"{name}.token").write_text(token)
    (out / "answers.json").write_text(json.dumps(answers(keys, snapshot)))

    new = {"message_id": "{message_id}"}
    queue = f"/v1/tenants/{WORKSPACE}/consumers/{CONSUMER}"
    form = "application/x-www-form-urlencoded"
    login = f"grant_type=client_credentials&client_id={PRODUCER}&client_secret={SECRET}"
    handles = compact({"receipt_handles": [handle(id) for id in message_ids()]})
    token_request = request("POST", "/v1/oauth/token", login, form)
    del token_request["headers"]["authorization"]
    measured = [
        ("publish-event", "publish", "producer", request("POST", "/v1/jwt/messages", compact(telling(snapshot) | new))),
        ("publish-snapshot", "publish", "producer", request("POST", "/v1/jwt/messages", compact(snapshot | new))),
        ("pull-receive-10", "pull", "consumer", request("GET", f"{queue}/messages", query="max=10&wait=0")),
        ("pull-ack-10", "pull", "consumer", request("POST", f"{queue}/ack", handles)),
        ("token", "token", "consumer", token_request),
        ("archive-10", "archive", "consumer", batch(snapshot)),
        ("archive-10-events", "archive", "consumer", batch(telling(snapshot))),
    ]
    environment = {
        "STORYBUS_PREFIX": PREFIX, "STORYBUS_ACCOUNT": ACCOUNT, "STORYBUS_TABLE": "bus-bus",
        "STORYBUS_ARCHIVE_TABLE": "bus-archive", "STORYBUS_ARCHIVE_DAYS": "30", "STORYBUS_SIGNING_KEYS": "bus-signing-keys",
        "STORYBUS_ISSUER": ISSUER,
    }
    settings = [word for name, value in environment.items() for word in ("--env", f"{name}={value}")]
    for name, function, who, event in measured:
        (out / f"{name}.json").write_text(json.dumps(event))
        args = ["--event", out / f"{name}.json", "--token", out / f"{who}.token", *settings, "--", binaries / function]
        (out / f"{name}.sh").write_text(f"args=({shlex.join(map(str, args))})\n")


if __name__ == "__main__":
    main()
