#!/usr/bin/env python3
"""report.py BINARIES HTTP.jsonl TLS.jsonl   The figures of a run as tables, and the bars beside what was measured.

Ends with 1 if a bar is missed."""

import io
import json
import pathlib
import statistics
import sys
import zipfile

HEADINGS = ["init ms", "first ms", "warm p50 ms", "warm p99 ms", "CPU µs", "peak MB", "requests"]
KEYS = ["init_ms_p50", "first_ms_p50", "warm_ms_p50", "warm_ms_p99", "cpu_warm_us", "rss_peak_mb", "requests"]
DECIMALS = [2, 2, 3, 3, 0, 1, 2]
FUNCTIONS = ["publish", "pull", "token", "archive"]


def rounds(file):
    """The measurements of each function; one count of requests follows each."""
    found, latest = {}, {}
    for line in map(json.loads, pathlib.Path(file).read_text(encoding="utf-8").splitlines()):
        if "counts" in line:
            total = sum(count["n"] for count in line["counts"].values())
            if latest.get("invocations"):
                latest["requests"] = total / latest["invocations"]
        else:
            latest = line
            found.setdefault(line["label"], []).append(line)
    return found


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else float("nan")


def medians(measured):
    table = {}
    for name, all_rounds in measured.items():
        table[name] = {key: median([r.get(key) for r in all_rounds]) for key in KEYS}
        cold = [r["init_ms_p50"] + r["first_ms_p50"] for r in all_rounds if r.get("init_ms_p50") and r.get("first_ms_p50")]
        table[name]["cold"] = median(cold)
        table[name]["answers"] = {status for r in all_rounds for status in r["statuses"]}
        table[name]["failed"] = [r["failure"] for r in all_rounds if not r["ok"] or r["errors"]]
    return table


def ratio(measured, name, key, base):
    """The median of the rounds' own ratios: what both meet in one round is the same noise."""
    pairs = zip(measured[name], measured[base])
    value = (lambda r: r["init_ms_p50"] + r["first_ms_p50"]) if key == "cold" else (lambda r: r[key])
    return median([value(a) / value(b) for a, b in pairs])


def show(title, table):
    print(f"\n{title}\n\n| function | answers | {' | '.join(HEADINGS)} |\n|{'---|' * (2 + len(HEADINGS))}")
    for name, figures in table.items():
        cells = [f"{figures[key]:,.{decimals}f}" for key, decimals in zip(KEYS, DECIMALS)]
        print(f"| {name} | {', '.join(sorted(figures['answers']))} | {' | '.join(cells)} |")


def zipped(binary):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as package:
        package.write(binary, "bootstrap")
    return len(buffer.getvalue()) / 1e6


def main():
    binaries = pathlib.Path(sys.argv[1])
    plain, tls = rounds(sys.argv[2]), rounds(sys.argv[3])
    show("Over HTTP", medians(plain))
    show("Over TLS", medians(tls))

    sizes = {name: (binaries / name).stat().st_size / 1e6 for name in FUNCTIONS}
    packages = {name: zipped(binaries / name) for name in FUNCTIONS}
    print("\n| package | binary MB | zipped MB |\n|---|---|---|")
    for name in FUNCTIONS:
        print(f"| {name} | {sizes[name]:.1f} | {packages[name]:.2f} |")

    bars = []
    for name in ("publish-event", "publish-snapshot"):
        bars += [
            (name, "init, of the floor's", ratio(plain, name, "init_ms_p50", "rust-floor"), 2.5),
            (name, "CPU, of the floor's", ratio(plain, name, "cpu_warm_us", "rust-floor"), 1.5),
            (name, "CPU, of Powertools TypeScript's", ratio(plain, name, "cpu_warm_us", "node-pt"), 1 / 4),
            (name, "p50, of Powertools TypeScript's", ratio(plain, name, "warm_ms_p50", "node-pt"), 1 / 3),
            (name, "init + first over TLS, of Powertools TypeScript's", ratio(tls, name, "cold", "node-pt"), 1 / 15),
            (name, "peak, MB", median([r["rss_peak_mb"] for r in plain[name] + tls[name]]), 25),
        ]
    for name in ("pull-receive-10", "pull-ack-10", "archive-10", "token"):
        bars.append((name, "init, of the floor's", ratio(plain, name, "init_ms_p50", "rust-floor"), 2.5))
    for name, size in packages.items():
        bars.append((name, "zipped, MB", size, 8))
    print("\n| function | what | measured | bar | |\n|---|---|---|---|---|")
    missed = 0
    for name, what, value, limit in bars:
        # the bars are an event's, which has three requests as the floor has; a snapshot has five
        counts = name != "publish-snapshot"
        held = value <= limit
        missed += counts and not held
        verdict = ("held" if held else "**missed**") if counts else "no bar"
        print(f"| {name} | {what} | {value:.3f} | {limit:.3f} | {verdict} |")
    failed = [f"{name}: {reason}" for table in (medians(plain), medians(tls)) for name, f in table.items() for reason in f["failed"]]
    for line in failed:
        print(f"FAILED {line}")
    return 1 if missed or failed else 0


if __name__ == "__main__":
    sys.exit(main())
