"""Tokens, keys, and what is no route."""


def token(w):
    """A token request, right or wrong. Who fails often is slowed down, so every wrong one is somebody else's."""
    _, producer = w.any_producer()
    _, consumer = w.any_consumer()
    who = w.rng.choice([producer.symbol, consumer.symbol, "O0"])
    scope = w.rng.choice(["", "&scope=sombus/publish", "&scope=sombus/consume", "&scope=sombus/admin", "&scope=nonsense", "&scope=sombus/publish+sombus/consume"])
    w.run.alike(f"a token for {who}{scope}", lambda side: side.token_request(f"<<{who}>>", f"<<{who}.secret>>", "grant_type=client_credentials" + scope))


def token_by_form(w):
    _, producer = w.any_producer()
    client, secret = f"client_id=<<{producer.symbol}>>", f"client_secret=<<{producer.symbol}.secret>>"
    form = w.rng.choice([
        f"grant_type=client_credentials&{client}&{secret}", f"{client}&{secret}", f"grant_type=client_credentials&{client}", f"grant_type=password&{client}&{secret}",
        f"grant_type=client_credentials&{client}&{client}&{secret}", f"grant_type=client_credentials&grant_type=client_credentials&{client}&{secret}",
        f"grant_type=client_credentials&{client}&{secret}&scope=", f"grant_type=&{client}&{secret}", f"grant_type=client_credentials&{client}&{secret}&other=%zz", "", "%",
        f"grant_type=client_credentials&{client}&{secret}&x=" + "y" * 17000])
    kind = w.rng.choice(["application/x-www-form-urlencoded"] * 3 + ["application/x-www-form-urlencoded; charset=UTF-8", "application/json", None])
    headers = {"content-type": kind, "authorization": None}
    w.run.alike(f"a token by a form {form[:80]} {kind}", lambda side: side.token_request("", "", form, headers))


def token_wrong(w):
    client = w.rng.choice(["nobody", f"p{w.rng.randrange(10**9):020}", "", "a:b"])
    w.run.alike("a token for nobody", lambda side: side.token_request(client, "wrong"))


def token_both_ways(w):
    _, producer = w.any_producer()
    form = w.rng.choice([f"grant_type=client_credentials&client_id=<<{producer.symbol}>>", f"grant_type=client_credentials&client_id=<<{producer.symbol}>>&client_secret=<<{producer.symbol}.secret>>",
                         "grant_type=client_credentials&client_id=other"])
    w.run.alike("both ways", lambda side: side.token_request(f"<<{producer.symbol}>>", f"<<{producer.symbol}.secret>>", form))


def documents(w):
    path = w.rng.choice(["/openapi.json", "/asyncapi.json", "/.well-known/jwks.json"])

    def shape(body):
        if "keys" in body:
            return sorted({tuple(sorted(key)) for key in body["keys"]})
        return {**body, "servers": None}
    w.run.request("a document", "GET", path, shape=shape)


def no_route(w):
    # nothing percent-encoded: an HTTP API hands paths on decoded (docs/aws.md)
    workspace, producer = w.any_producer()
    path = w.rng.choice(["/nonsense", f"/tenants/<<{workspace.symbol}>>/nonsense", "/admin/nonsense", f"/admin/tenants/<<{workspace.symbol}>>/nonsense",
                         f"/tenants/<<{workspace.symbol}>>/messages/", f"/tenants//messages", f"/tenants/<<{workspace.symbol}>>/consumers/c1/nonsense",
                         f"/tenants/<<{workspace.symbol}>>/consumers", "/oauth", "/oauth/token/x", "/admin/tenants/", "/jwt/messages/x", "/%2e%2e/x",
                         "/admin/audit/x", f"/tenants/<<{workspace.symbol}>>/consumers/a/b/c/d"])
    method = w.rng.choice(["GET", "POST", "PUT", "DELETE", "PATCH"])
    who = w.rng.choice([producer.symbol, "O0", None])
    w.run.request("no route", method, path, {} if method in ("POST", "PUT", "PATCH") else None, who)


def no_method(w):
    workspace, consumer = w.any_consumer()
    path = w.rng.choice(["/oauth/token", "/.well-known/jwks.json", f"/tenants/<<{workspace.symbol}>>/messages", "/jwt/messages", "/admin/tenants", "/admin/audit",
                         f"/admin/tenants/<<{workspace.symbol}>>", f"/tenants/<<{workspace.symbol}>>/consumers/<<{consumer.symbol}>>/messages",
                         f"/tenants/<<{workspace.symbol}>>/consumers/<<{consumer.symbol}>>/ack", f"/admin/tenants/<<{workspace.symbol}>>/jobs/j1", "/openapi.json"])
    # not OPTIONS: the emulator's gateway answers that itself
    method = w.rng.choice(["PUT", "HEAD", "PUT"])
    w.run.request("no method", method, path, {} if method == "PUT" else None, w.rng.choice(["O0", None]))
