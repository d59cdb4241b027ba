"""What the run has made so far: enough to know what to ask next."""

import dataclasses

import messages


@dataclasses.dataclass
class Producer:
    symbol: str
    system_ids: list
    types: list
    secrets: list


@dataclasses.dataclass
class Consumer:
    symbol: str
    held: list = dataclasses.field(default_factory=list)  # (handle, correlation id, message id), each by its name
    spent: list = dataclasses.field(default_factory=list)
    rejected: list = dataclasses.field(default_factory=list)
    max_receives: int = 5
    purged: bool = False
    secrets: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Workspace:
    symbol: str
    producers: list = dataclasses.field(default_factory=list)
    consumers: list = dataclasses.field(default_factory=list)
    stories: dict = dataclasses.field(default_factory=dict)  # story_id: [correlation id, last number, extra members]
    correlations: list = dataclasses.field(default_factory=list)
    sent: list = dataclasses.field(default_factory=list)  # (producer, text) of what was accepted
    jobs: list = dataclasses.field(default_factory=list)
    changes: int = 0


class World:
    def __init__(self, run, name):
        self.run, self.rng, self.ids = run, run.rng, messages.Ids(name)
        self.name, self.workspaces, self.operators, self.marks, self.numbers = name, [], [], [], {}
        self.writes = 0

    def symbol(self, kind):
        self.numbers[kind] = self.numbers.get(kind, 0) + 1
        return f"{kind}{self.numbers[kind]}"

    def workspace(self, **members):
        symbol = self.symbol("W")
        if self.run.made("a workspace", "/admin/tenants", {"name": f"workspace {symbol}", **members}, {"tenant": symbol}):
            self.workspaces.append(Workspace(symbol))
            self.writes += 1
            return self.workspaces[-1]

    def producer(self, workspace, types=("*",), systems=1, **members):
        symbol = self.symbol("P")
        system_ids = [f"{self.name}-{symbol}-{n}" for n in range(systems)]
        body = {"name": f"producer {symbol}", "system_ids": system_ids, "message_types": list(types), **members}
        learn = {"client_id": symbol, "client_secret": symbol + ".secret", "secret_id": symbol + ".s1"}
        if self.run.made("a producer", f"/admin/tenants/<<{workspace.symbol}>>/producers", body, learn):
            workspace.producers.append(Producer(symbol, system_ids, list(types), [symbol + ".s1"]))
            self.writes += 1
            return workspace.producers[-1]

    def consumer(self, workspace, **members):
        symbol = self.symbol("C")
        body = {"name": f"consumer {symbol}", "visibility_seconds": 3600, **members}
        learn = {"client_id": symbol, "client_secret": symbol + ".secret", "secret_id": symbol + ".s1"}
        if self.run.made("a consumer", f"/admin/tenants/<<{workspace.symbol}>>/consumers", body, learn, drop=("settled_by",)):
            workspace.consumers.append(Consumer(symbol, max_receives=members.get("max_receives", 5), secrets=[symbol + ".s1"]))
            self.writes += 1
            return workspace.consumers[-1]

    def any_workspace(self):
        return self.rng.choice(self.workspaces)

    def any_producer(self):
        workspace = self.rng.choice([w for w in self.workspaces if w.producers])
        return workspace, self.rng.choice(workspace.producers)

    def any_consumer(self):
        workspace = self.rng.choice([w for w in self.workspaces if w.consumers])
        return workspace, self.rng.choice(workspace.consumers)

    def event(self, workspace, producer):
        """An event that the producer may send."""
        allowed = [t for t in messages.TYPES if any(g == "*" or g == t or g.endswith(".*") and t.startswith(g[:-1]) for g in producer.types)]
        kind = self.rng.choice(allowed or messages.TYPES)
        if len(workspace.correlations) < 12 or self.rng.random() < 0.1:
            workspace.correlations.append(self.ids.next())
        members = {"topic": f"som.desk.{self.rng.choice('abc')}"} if self.rng.random() < 0.3 else {}
        return messages.envelope(self.ids, self.rng.choice(producer.system_ids), kind, messages.PAYLOADS[kind],
                                 self.rng.choice(workspace.correlations), **members)

    def snapshot(self, workspace, producer):
        """A story's next snapshot, or a new story's first."""
        if len(workspace.stories) < 4 or self.rng.random() < 0.1:
            story = f"story-{self.symbol('T')}-{self.name}"
            workspace.stories[story] = [self.ids.next(), 0, {}]
        story = self.rng.choice(list(workspace.stories))
        correlation, number, extra = workspace.stories[story]
        if self.rng.random() < 0.2:
            extra = {**extra, "newsroom_id": "n1"}
        payload = messages.snapshot(story, number + self.rng.choice([1, 1, 1, 3]), **extra)
        return story, extra, messages.envelope(self.ids, self.rng.choice(producer.system_ids), "story.context", payload, correlation)
