"""Whether two buses answer alike: one made-up sequence of operations is done on both, and every status, header and body compared.

    python3 .ci/alike --serve target/debug/storybus CREDENTIALS [--operations N] [--seed S] [--verbose]
    python3 .ci/alike CREDENTIALS CREDENTIALS [...]

CREDENTIALS are files in the form of `storybus serve --credentials-file`, with an operator. The first bus is one that counts exactly: the
embedded one. The sequence follows from the seed. What may differ is put into names or left out, and listed in docs/aws.md; what may lag is asked
for until both agree, within bounds. Ends with 1 when anything differs.
"""

import argparse
import json
import random
import sys
import time
import traceback

import operating
import others
import publishing
import pulling
from run import Run
from side import Served, Side
from world import World

WEIGHTS = {
    publishing.event: 14, publishing.snapshot: 10, publishing.stale: 7, publishing.again: 5, publishing.reused: 4, publishing.spoilt: 9, publishing.broken: 5,
    publishing.grants: 4, publishing.key: 3, publishing.encoding: 1, publishing.no_right: 4, publishing.validate: 4, publishing.state: 4,
    pulling.receive: 10, pulling.acknowledge: 7, pulling.give_back: 4, pulling.reject: 5, pulling.bad_handles: 3, pulling.spent_handles: 3, pulling.lapse: 1.5,
    pulling.attempt: 2, pulling.bad_receive: 3, pulling.bad_body: 3, pulling.no_right: 3, pulling.skills: 0.5,
    operating.new_workspace: 1, operating.new_producer: 2, operating.new_consumer: 2, operating.taken: 1, operating.bad_bodies: 6, operating.bad_job_bodies: 2,
    operating.show: 4, operating.lists: 2, operating.top_lists: 1, operating.bad_queries: 2, operating.rename: 2, operating.rename_workspace: 0.5,
    operating.rights: 1, operating.secrets: 2, operating.operators: 0.7, operating.not_empty: 0.5, operating.no_right: 2,
    operating.queue: 2, operating.dead_letters: 2, operating.redrive: 2, operating.replay: 2, operating.mark: 1, operating.jobs: 2, operating.activity: 1,
    operating.stories: 2, operating.way: 2, operating.audit: 1, operating.purge: 0.4,
    others.token: 2, others.token_by_form: 2, others.token_wrong: 0.7, others.token_both_ways: 0.7, others.documents: 0.5, others.no_route: 3, others.no_method: 2,
}
# So many operations are done before what was changed in rights is asked about: a change needs a minute to hold everywhere.
BETWEEN_SETTLINGS = 400


def settle(world):
    if world.later:
        world.run.operation = "settled"
        world.run.settle()
        for after in world.later:
            after()
        world.later.clear()


def go(run, operations, name, seed):
    world = World(run, name)
    world.began, world.later = time.time() - 1, []
    run.operation = "beginning"
    for _ in range(2):
        workspace = world.workspace()
        world.producer(workspace)
        world.producer(workspace, ["story.*", "telling.*", "asset.note"], 2)
        world.consumer(workspace)
        world.consumer(workspace, max_receives=2)
    kinds, weights = list(WEIGHTS), list(WEIGHTS.values())
    done = dict.fromkeys(kinds, 0)
    for number in range(operations):
        kind = kinds[number] if number < len(kinds) else run.rng.choices(kinds, weights)[0]
        run.operation = f"operation {number} ({kind.__module__}.{kind.__name__})"
        began = time.monotonic()
        try:
            kind(world)
        except Exception:  # the buses are in different states now, or one does not answer
            run.check("it can be done", "done", traceback.format_exc(limit=4))
        done[kind] += 1
        if time.monotonic() - began > 20:
            print(f"{run.operation} took {time.monotonic() - began:.0f} s", flush=True)
        if (number + 1) % BETWEEN_SETTLINGS == 0:
            settle(world)
    settle(world)
    missing = [k.__name__ for k, n in done.items() if not n]
    print(f"{operations} operations with seed {seed}, {run.compared} comparisons, {run.differences} differences, longest lag {run.waited:.1f} s"
          + (f"; never done: {', '.join(missing)}" if missing else ""))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("credentials", nargs="+")
    ap.add_argument("--serve", metavar="BINARY", help="start `storybus serve` for the first bus")
    ap.add_argument("--operations", type=int, default=300)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--verbose", action="store_true", help="a line for each comparison")
    o = ap.parse_args()
    if len(o.credentials) != (1 if o.serve else 2):
        ap.error("two buses are compared")
    served = Served(o.serve) if o.serve else None
    try:
        known = [served.credentials()] if served else []
        for file in o.credentials:
            with open(file) as opened:
                known.append(json.load(opened))
        run = Run(Side("one", known[0]), Side("other", known[1]), random.Random(o.seed), o.verbose)
        go(run, o.operations, f"alike-{o.seed}-{int(time.time())}", o.seed)
        return 1 if run.differences else 0
    finally:
        if served:
            served.stop()


if __name__ == "__main__":
    sys.exit(main())
