#!/usr/bin/env python3
"""Prints the figures of reload_bench.py beside their limits; exits 1 if one is passed.

  limits.py RESULTS.jsonl

A limit of time is a ratio within one run: to the floor that the same run measured.
"""
import json, sys


def limits(run):
    """(what, figure, limit) for one run; a figure may be as high as its limit."""
    if run["name"] == "event_cost":
        few, *more = run["ns_per_event"].items()
        for workloads, cost in more:
            yield f"an event with {workloads} workloads, × {few[0]}", cost / few[1], 2
    elif run["name"] == "secrets":
        yield "ready, × a bare paged list", run["ready_s"] / run["bare_list_s"], 2
        yield "RSS, MiB", run["rss_mib"], 40
        yield "first list: peak RSS, MiB", run["peak_rss_mib"], 50
    else:
        yield from limits_of_reloading(run)


def limits_of_reloading(run):
    workloads, floor = run["workloads"], run["floor_two_calls_ms"]
    # 10,000 pods may take this much.
    more = 15 if run["name"] == "churn" else 0
    yield "rollouts on first start", run["rollouts_on_first_start"], 0
    yield "rollouts on restart", run["rollouts_on_restart"], 0
    yield "rollouts on a metadata change", run["rollouts_on_metadata_change"], 0
    yield "missed", run["steady"]["missed"], 0
    yield "duplicates", run["steady"]["duplicate"] + run["fanout"]["duplicate"], 0
    yield "not reached by fan-out", workloads - run["fanout"]["reached"], 0
    yield "not reached after a change while away", workloads - run["changed_while_away"]["reached"], 0
    yield "not reached by a burst", workloads - run["burst"]["reached"], 0
    yield "idle: RSS, MiB", run["idle"]["rss_mib"], 25 + more
    yield "first list: peak RSS, MiB", run["idle"]["peak_rss_mib"], 30 + more
    if run["name"] != "churn":
        yield "idle: % of a core", run["idle_cpu_pct"], 0.5
    if run["name"] == "defaults":
        yield "rollouts in a burst, per workload", run["burst"]["rollouts"] / workloads, 1
        yield "rollouts in a deploy, per workload", run["deploy"]["rollouts"] / workloads, 1
        return
    steady = run["steady"]
    yield "p50, × the floor's", steady["p50_ms"] / floor["p50"], 1.5
    yield "p99, × the floor's", steady["p99_ms"] / floor["p99"], 2
    yield "fan-out: last template, × the floor", run["fanout"]["last_ms"] / run["floor_fanout_ms"], 1.5
    if run["name"] == "requests":
        yield "requests per reload, beyond the floor's", steady["requests_per_reload"] - floor["requests_per_reload"], 4.2


def title(run):
    if "ballast" in run:
        return f"{run['name']}: {run['workloads']} workloads, {run['ballast']} KiB of unrelated Secrets"
    return f"{run['name']}: {run['secrets']} KiB of Secrets" if "secrets" in run else run["name"]


def main():
    passed = False
    for line in open(sys.argv[1], encoding="utf-8"):
        run = json.loads(line)
        print(title(run))
        for what, figure, limit in limits(run):
            passed |= figure > limit
            print(f"  {what:<42} {figure:>9.2f}   at most {limit:<6} {'PASSED THE LIMIT' if figure > limit else 'ok'}")
    sys.exit(passed)


main()
