"""What local-aws/up and local-aws/down share: where the local stack lies, its tools, its first clients."""

import contextlib
import fcntl
import json
import os
import pathlib
import subprocess
import sys
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
HOME = pathlib.Path(os.environ.get("STORYBUS_LOCAL_AWS", ROOT / "target" / "local-aws"))
STATE = HOME / "state.json"
RECORD = HOME / "asked-for.jsonl"
STACK = "storybus"
SYSTEM_ID = "demo-ncs"
REGION = "eu-central-1"


@contextlib.contextmanager
def lock():
    """Only one process brings the stack up at a time."""
    HOME.mkdir(parents=True, exist_ok=True)
    with open(HOME / "up.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def environment():
    """The virtual environment with what requirements-sam.txt names; only one process makes it."""
    venv, wanted = HOME / "venv-sam", (HERE / "requirements-sam.txt").read_text()
    stamp = venv / "requirements-sam.txt"
    HOME.mkdir(parents=True, exist_ok=True)
    with open(HOME / "venv-sam.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != wanted:
            subprocess.run([sys.executable, "-m", "venv", "--clear", venv], check=True, stdout=sys.stderr)
            install = [venv / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check"]
            print(f"installing what local-aws/requirements-sam.txt names (a minute or more)", file=sys.stderr, flush=True)
            for attempt in (1, 2, 3):  # a registry may fail for a moment
                done = subprocess.run([*install, "-r", HERE / "requirements-sam.txt"], check=attempt == 3, stdout=sys.stderr)
                if done.returncode == 0:
                    break
            stamp.write_text(wanted)
    return venv


def env(address=None):
    """The environment of the tools: of this machine's AWS settings nothing, so that nothing can reach a real account."""
    own = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "SAM_"))}
    own |= {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_REGION": REGION, "AWS_DEFAULT_REGION": REGION,
            "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull, "AWS_EC2_METADATA_DISABLED": "true",
            "SAM_CLI_TELEMETRY": "0", "SAM_CLI_POLL_DELAY": "0.5"}
    if address:
        own["AWS_ENDPOINT_URL"] = address
    return own


def run(env, *words, capture=False):
    """SAM's command line. What it says is shown when it fails."""
    done = subprocess.run([HOME / "venv-sam" / "bin" / "sam", *map(str, words)], cwd=ROOT, env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=None if capture else subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout}\nsam {words[0]} failed")
    return done.stdout


def running():
    """The state of the MiniStack that local-aws/up started, if it is that process and answers."""
    try:
        state = json.loads(STATE.read_text())
        command = subprocess.run(["ps", "-o", "command=", "-p", str(state["pid"])], capture_output=True, text=True).stdout
        return state if str(HERE / "ministack") in command else None
    except (OSError, ValueError, KeyError):
        return None


def storybus():
    """The command line: STORYBUS_BINARY, or built as the tests build it."""
    if binary := os.environ.get("STORYBUS_BINARY"):
        return binary
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    subprocess.run(["cargo", "build", "--quiet", "--locked", "-p", "storybus-cli"], cwd=ROOT, check=True)
    return target / "debug" / "storybus"


def first_operator(env, base_url, file):
    """The first operator, as a real deployment gets it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([storybus(), "deploy-check", STACK, "--url", base_url, "--credentials-file", file], env=env, check=True,
                   stdout=sys.stderr)


def call(base_url, path, token=None, form=None, body=None):
    headers, data = {}, None
    if token:
        headers["authorization"] = f"Bearer {token}"
    if form:
        data = urllib.parse.urlencode(form).encode()
    if body:
        headers["content-type"], data = "application/json", json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(base_url + path, data, headers), timeout=30) as answer:
        return json.loads(answer.read())


def demo(base_url, file):
    """A workspace, a producer of everything as SYSTEM_ID and a consumer of everything, as `storybus serve --demo` makes them; once."""
    known = json.loads(file.read_text())
    if "consumer" in known or "client_secret" not in known.get("operator", {}):
        return
    operator = known["operator"]
    token = call(base_url, "oauth/token", form={"grant_type": "client_credentials", **operator})["access_token"]
    tenant = call(base_url, "admin/tenants", token, body={"name": "demo"})["tenant"]
    producer = call(base_url, f"admin/tenants/{tenant}/producers", token,
                    body={"name": "demo producer", "system_ids": [SYSTEM_ID], "message_types": ["*"]})
    consumer = call(base_url, f"admin/tenants/{tenant}/consumers", token,
                    body={"name": "demo consumer", "message_types": ["*"], "topic_prefixes": [], "sources": []})
    def client(made):
        return {k: made[k] for k in ("client_id", "client_secret")}

    known |= {"base_url": base_url, "tenant": tenant, "producer": {**client(producer), "system_id": SYSTEM_ID}, "consumer": client(consumer)}
    new = file.with_suffix(".new")
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        json.dump(known, out, indent=2)
    new.replace(file)
