#!/usr/bin/env python3
"""costs.py   The tables of docs/costs.md: what units.py counted, times prices. Put your region's prices and your sizes here."""

# --- Prices, US dollars, us-east-1, without free tiers. `?` marks what docs/costs.md says must be looked up again.
M = 1e6
GB = 1e9
API = 1.00 / M  # HTTP API, a request of up to 512 KB
LAMBDA = 0.20 / M
GB_SECOND = 0.0000133334  # arm64
WRITE = 0.625 / M  # DynamoDB on demand: a write unit of 1 KB
READ = 0.125 / M  # a strongly consistent read of 4 KB
STORED = 0.25 / GB  # a month
SNS_PUBLISH = 0.30 / M  # FIFO
SNS_PUBLISHED = 0.017 / GB
SNS_DELIVERY = 0.01 / M
SNS_DELIVERED = 0.001 / GB
SQS = 0.50 / M  # FIFO, a request of up to 64 KB
LOGS = 0.50 / GB  # ?
METRIC = 0.30  # ? a custom metric a month
ALARM = 0.10  # ? a month
SECRET = 0.40  # ? a month
RESTORABLE = 0.20 / GB  # ? point-in-time recovery, a month

# --- Sizes and counts, by units.py: a message of 3.8 kB.
WIRE = 4_047  # body and attributes
LINE = 900  # the function's line of log and metrics
PUBLISH = {"event": {"writes": 2, "reads": 0, "ms": 40}, "snapshot": {"writes": 7, "reads": 5, "ms": 60}}
ARCHIVE = {"event": 2 + 2, "snapshot": 2 + 3}  # write units of an item, and of its entries in the indexes
ARCHIVED = {"event": 1_303 + 100 + 406, "snapshot": 1_303 + 100 + 609}
RECORD, RECORD_DAYS = 215 + 100, 7
MEMORY = {"publish": 0.5, "pull": 0.25, "archive": 0.5}
PULL_MS, ARCHIVE_MS = 30, 60


def seconds(memory, ms):
    return MEMORY[memory] * ms / 1000 * GB_SECOND


def publish(kind):
    p = PUBLISH[kind]
    return {
        "API Gateway": API,
        "Lambda": LAMBDA + seconds("publish", p["ms"]),
        "DynamoDB": p["writes"] * WRITE + p["reads"] * READ + RECORD * STORED * RECORD_DAYS / 30,
        "SNS": SNS_PUBLISH + WIRE * SNS_PUBLISHED,
        "log": LINE * LOGS,
    }


def into_a_queue():
    """A delivery to a queue: SNS's part, and a request of SQS (?)."""
    return SNS_DELIVERY + WIRE * SNS_DELIVERED + SQS


def archive(kind, batch):
    return {
        "SNS and SQS": into_a_queue() + 2 * SQS / batch,
        "Lambda": (LAMBDA + seconds("archive", ARCHIVE_MS) + LINE * LOGS) / batch,
        "DynamoDB": ARCHIVE[kind] * WRITE + READ,
    }


def consumer(batch, direct=False):
    """A delivery, received and acknowledged."""
    own = 2 * SQS / batch
    if not direct:
        own += 2 * (API + LAMBDA + seconds("pull", PULL_MS) + LINE * LOGS) / batch
    return into_a_queue() + own


def dollars(value):
    return f"{value * M:.2f}"


def main():
    kinds = ("event", "snapshot")
    print("A million publishes:\n\n| | event | snapshot |\n|---|---|---|")
    for name in publish("event"):
        print(f"| {name} | {' | '.join(dollars(publish(kind)[name]) for kind in kinds)} |")
    print(f"| **publish** | {' | '.join('**' + dollars(sum(publish(kind).values())) + '**' for kind in kinds)} |")
    for name in archive("event", 10):
        print(f"| archive: {name} | {' | '.join(dollars(archive(kind, 10)[name]) for kind in kinds)} |")
    base = {kind: sum(publish(kind).values()) + sum(archive(kind, 10).values()) for kind in kinds}
    print(f"| **with the archive, no consumer** | {' | '.join('**' + dollars(base[kind]) + '**' for kind in kinds)} |")

    print("\nWith consumers:\n\n| consumers | event, tens | snapshot, tens | event, one by one | snapshot, one by one | snapshot, tens, read from SQS |\n|---|---|---|---|---|---|")
    for n in (1, 5, 20):
        single = {kind: sum(publish(kind).values()) + sum(archive(kind, 1).values()) for kind in kinds}
        cells = [base[k] + n * consumer(10) for k in kinds] + [single[k] + n * consumer(1) for k in kinds]
        cells.append(base["snapshot"] + n * consumer(10, direct=True))
        print(f"| {n} | {' | '.join(dollars(cell) for cell in cells)} |")
    print(f"\nA delivery to a consumer, a million: {dollars(consumer(10))} in tens, {dollars(consumer(1))} one by one,"
          f" {dollars(consumer(10, True))} in tens from SQS itself.")

    month = 30 * 86_400
    print("\nA month of an idle consumer that always waits:\n\n| wait | receives | API Gateway | Lambda | SQS | in all |\n|---|---|---|---|---|---|")
    for wait in (20, 5):
        n = month / wait
        function = n * (LAMBDA + MEMORY["pull"] * wait * GB_SECOND + LINE * LOGS)
        print(f"| {wait} s | {n:,.0f} | {n * API:.2f} | {function:.2f} | {n * SQS:.2f} | {n * API + function + n * SQS:.2f} |")
    for pause in (20, 60):
        n = month / pause
        function = n * (LAMBDA + seconds("pull", PULL_MS) + LINE * LOGS)
        print(f"| 0, every {pause} s | {n:,.0f} | {n * API:.2f} | {function:.2f} | {n * SQS:.2f} | {n * API + function + n * SQS:.2f} |")
    n = month / 20
    print(f"| 20 s, SQS itself | {n:,.0f} | | | {n * SQS:.2f} | {n * SQS:.2f} |")

    print("\nThe archive, a million messages kept for a month:\n\n| | event | snapshot |\n|---|---|---|")
    print(f"| written | {' | '.join(dollars(sum(archive(kind, 10).values())) for kind in kinds)} |")
    print(f"| stored, a month | {' | '.join(dollars(ARCHIVED[kind] * STORED) for kind in kinds)} |")
    print(f"| restorable, a month | {' | '.join(dollars(ARCHIVED[kind] * RESTORABLE) for kind in kinds)} |")


if __name__ == "__main__":
    main()
