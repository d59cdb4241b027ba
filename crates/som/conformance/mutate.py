#!/usr/bin/env python3
"""Compares the validator with an independent one, over thousands of broken messages.

    python3 -m venv venv && venv/bin/pip install jsonschema
    venv/bin/python crates/som/conformance/mutate.py --som DIR [--sdk FILE] [--cases 20000] [--seed 1]

DIR holds the published SOM 1.0: `schema/` and `examples/`; FILE is the public SDK's list of validation cases about them. Every message is an example, or is made from the schemas,
broken in one to four places. Both validators must list the same multiset of (rule, path), refused and tolerated.
Ends with 1 on any difference, when a rule of the schemas was never met, or when a schema file has other constraints
than the published one.
"""
import argparse
import collections
import copy
import json
import os
import random
import re
import subprocess
import sys

from reference import FAMILIES, NAMES, Reference

UUID = '0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b07'
TIME = '2026-09-11T16:41:00Z'


def raw(number):
    """A number to be written as it stands: Python would change its notation."""
    return f'@number@{number}@'


NUMBERS = [raw(n) for n in ('0', '-0', '1', '-1', '1.0', '1.5', '0.5', '1e0', '1e-1', '10e-1', '-0.0', '1E400', '-1e-400', '1.0000000000000000000001',
                            '0.9999999999999999999999', '9007199254740993', '100000000000000000000000000000000000', '12e-1', '120e-1', '-1e-1')]
TEXTS = ['', ' ', 'x', 'é', '🎥', 'x' * 280, 'x' * 281, '🎥' * 280, '🎥' * 281, 'é' * 600, 'é' * 601, 'null', '0', '\n', '\u2028', 'a\u0000b', '"\\/']
TIMES = [TIME, TIME.lower(), '2026-09-11 16:41:00Z', '2026-09-11T16:41:00', '2026-09-11T24:00:00Z', '2026-02-29T00:00:00Z', '2024-02-29T00:00:00Z', '1900-02-29T00:00:00Z',
         '2000-02-29T00:00:00Z', '2016-12-31T23:59:60Z', '2016-12-31T15:59:60-08:00', '2016-12-31T23:59:60-08:00', '2016-12-31T22:59:60Z', '2026-09-11T16:41:61Z',
         '2026-09-11T16:41:00-00:00', '2026-09-11T16:41:00+23:59', '2026-09-11T16:41:00+24:00', '2026-09-11T16:41:00+02:60', '2026-09-11T16:41:00.Z', '2026-09-11T16:41:00.1234567890123Z',
         '2026-09-11T16:41Z', '2026-13-01T00:00:00Z', '2026-00-01T00:00:00Z', '2026-04-31T00:00:00Z', '2026-09-11T16:60:00Z', '0000-02-29T00:00:00Z', '0000-01-01T00:00:00Z',
         '2026-09-11T16:41:00Z\n', ' ' + TIME, '２026-09-11T16:41:00Z', '2026-9-11T16:41:00Z', '2026-09-11', '16:41:00Z', '2026-09-11T16:41:00+0200', '2026-09-11T16:41:00z']
UUIDS = [UUID, UUID.upper(), UUID.replace('-', ''), '{' + UUID + '}', 'urn:uuid:' + UUID, UUID[:-1], UUID + '0', UUID[:-1] + 'g', UUID + '\n', '0' * 8 + '-0000-0000-0000-' + '0' * 12, UUID.replace('-', '_'), '-' + UUID[1:]]
PATTERNS = ['1.0.0', '1.0', '1.0.0\n', '1.0.0-rc1', 'v1.0.0', '٣.0.0', '01.2.3', 'som.x', 'som', 'som.', 'Som.x', 'xsom.x', '\nsom.x', 'x-hologram', 'x-', 'x-A', 'x-a-b', 'x-a\n', 'X-a', 'x-é',
            'tams://a/b', 'tams://a/', 'tams:///b', 'tams://a', 'tams://a/\n', 'tams://a/\nb', 'tams://a/\u2028', 'tams://a\n/b', 'TAMS://a/b', ' tams://a/b', 'tams://a//', 'tams://é/ü',
            '[0:0_1:0)', '_', '[_]', '(_)', '[0:0_)', '[_1:1]', '[0_1]', '[0:0-1:0)', '[0:0_1:0', '0:0_1:0', '[0:0_1:0)\n', '[٣:0_1:0)', '[0:0_1:0)x', '[[_]',
            'newsroom', 'newsroom\n', 'iptc-mediatopic', 'com.example.ncs', 'com.example', 'com.Example.x', 'com.a.b.c', 'com.-.-', 'org.a.b', 'story.context', 'Story.Context', '_x', 'a', 'a.', '9a', 'story-context']
VERSIONS = ['1.0.0', '1.0.9', '1.1.0', '1.2.3', '1.10.0', '01.0.0', '01.00.0', '1.00.1', '1.01.0', '0.9.9', '0.3.2', '00.1.0', '2.0.0', '10.0.0', '1.0', '1.0.0.0', '', '1', 'one', '1.99999999999999999999999.0', '99999999999999999999999.0.0', '1.0.0\n']
TYPES = [*FAMILIES, 'telling.begun', 'story.', 'story', 'storyboard.x', 'link.x', 'delivery.x', 'system.audited', 'skill.warning.lowered', 'skill.warning', 'skill.run.completed', 'asset.ingested', 'Story.context', 'x y', '']
ADDED = ['new_member', 'source', 'signature', 'instances', 'sources', 'content_ref', 'broadcaster_id', 'broadcaster', 'ai_enrichments', 'instance_ref', 'timestamp', 'message_type', 'lifecycle', 'locator', 'withdrawn', 'model',
         'model_version', 'exposure_end', 'exposure_start', 'media_range', 'extensions', 'com.acme.x', 'com.acme', 'com.acme.', 'xcom.acme.x', 'com.Acme.x', 'com..x', '@context', '', 'a/b', '~', 'a~1b', '\u0000', 'é', 'review', 'time_range', 'tags', 'claim', 'value', 'metric']


def wrap(payload, kind):
    return {'som_version': '1.0.0', 'message_id': UUID, 'correlation_id': UUID, 'message_type': kind, 'timestamp': TIME,
            'originating_system': {'system_id': 's', 'system_type': 'ncs'}, 'topic': 'som.' + kind, 'payload': payload}


def kind_of(name, payload):
    if isinstance(payload.get('message_type'), str):
        return payload['message_type']
    for part, kind in (('telling', 'telling.started'), ('delivery', 'delivery.media_available'), ('link', 'link.committed'),
                       ('skill-warning', 'skill.warning.raised'), ('audit', 'system.audit')):
        if part in name:
            return kind
    return 'story.context'


def examples(folder):
    """(name, envelope, whether it must be accepted)"""
    out = []
    for base, _, files in sorted(os.walk(folder)):
        for file in sorted(files):
            name = os.path.relpath(os.path.join(base, file), folder)
            with open(os.path.join(base, file), encoding='utf-8') as f:
                x = json.load(f)
            negative = name.startswith('negative')
            x = x['message'] if negative else x
            is_envelope = 'som_version' in x or 'originating_system' in x
            out.append((name, x if is_envelope else wrap(x, kind_of(name, x)), not negative))
    return out


class Maker:
    """Makes values from a schema: mostly valid, with every optional member now and then."""

    def __init__(self, rng, schemas):
        self.rng, self.schemas = rng, schemas
        self.enums = sorted({v for s in schemas.values() for v in self.all_enums(s)})

    def all_enums(self, node):
        if isinstance(node, dict):
            if isinstance(node.get('enum'), list):
                yield from node['enum']
            for v in node.values():
                yield from self.all_enums(v)
        elif isinstance(node, list):
            for v in node:
                yield from self.all_enums(v)

    def envelope(self):
        kind = self.rng.choice([*FAMILIES, 'story.context', 'story.context'])
        x = self.value('envelope', self.schemas['envelope'])
        payload = self.value(FAMILIES[kind], self.schemas[FAMILIES[kind]])
        if 'message_type' in payload:
            payload['message_type'] = kind
        return {**x, 'som_version': '1.0.0', 'message_type': kind, 'payload': payload}

    def value(self, name, schema):
        r = self.rng
        if schema is False or schema is True or schema == {}:
            return r.choice([None, 1, 'x', {}, []])
        if '$ref' in schema:
            return self.value(name, self.schemas[name]['$defs'][schema['$ref'].rsplit('/', 1)[1]])
        if 'const' in schema:
            return schema['const']
        if 'enum' in schema:
            return r.choice(schema['enum'])
        branches = schema.get('anyOf', [])
        if branches and 'type' not in schema:
            return self.value(name, r.choice(branches))
        kind = schema.get('type', 'string')
        if kind == 'object':
            required = {*schema.get('required', ()), *(r.choice(branches)['required'] if branches else ())}
            share = r.random()
            out = {k: self.value(name, s) for k, s in schema.get('properties', {}).items() if s is not False and (k in required or r.random() < share)}
            if 'patternProperties' in schema and r.random() < 0.5:
                out['com.acme.x'] = r.choice([1, {}, 'x'])
            out.update({k: r.choice(['x', 1]) for k in required if k not in out})
            if 'story_type' in out:
                if out['story_type'] == 'ACTIVE':
                    out['lifecycle'] = self.value(name, self.schemas[name]['$defs']['lifecycle'])
                else:
                    out.pop('lifecycle', None)
            if out.get('author') == 'HUMAN':
                out.pop('model', None), out.pop('model_version', None)
            if 'assertion_type' in out:
                out['claim'] = {'FACT_CHECK': {'metric': 'm', 'value': 1}, 'MATCH': {'story_id': 's'}, 'DETECTION': {'detection_class': 'd', 'verdict': 'v'}}[out['assertion_type']]
            return out
        if kind == 'array':
            return [self.value(name, schema.get('items', True)) for _ in range(r.choice([0, 1, 1, 2, 3]))]
        if kind == 'string':
            if schema.get('format') == 'uuid':
                return UUID
            if schema.get('format') == 'date-time':
                return TIME
            if 'pattern' in schema:
                return next(p for p in r.sample(PATTERNS, len(PATTERNS)) if re.search(schema['pattern'], p, re.ASCII) and '\n' not in p and '\u2028' not in p)
            return r.choice(['x', 'x', 'x', 'é', 'x' * 280, ''])
        return {'boolean': True, 'integer': r.choice([0, 7]), 'number': r.choice([0, 1, raw('0.25')])}[kind]

    # ------------------------------------------------------------ breaking

    def places(self, x, out):
        """Every (container, key), the deeper as likely as the others."""
        items = x.items() if isinstance(x, dict) else enumerate(x) if isinstance(x, list) else ()
        for k, v in items:
            out.append((x, k))
            self.places(v, out)
        return out

    def any_value(self):
        r = self.rng
        return copy.deepcopy(r.choice([
            lambda: r.choice([None, True, False, {}, [], [[]], {'a': 1}, ['x'], ['x', 'x'], [{}], [None], [1, raw('1.0')]]),
            lambda: r.choice(NUMBERS), lambda: r.choice(TEXTS), lambda: r.choice(self.enums), lambda: r.choice(TIMES), lambda: r.choice(UUIDS), lambda: r.choice(PATTERNS)])())

    def near(self, v):
        """A value that looks like the one it replaces."""
        r = self.rng
        if isinstance(v, str) and not v.startswith('@number@'):
            if re.match(r'\d{4}-\d\d-\d\dT', v):
                return r.choice(TIMES)
            if re.fullmatch(r'[0-9A-Fa-f-]{36}', v):
                return r.choice(UUIDS)
            if re.match(r'[\[(_]|tams:|som\.|x-|com\.|newsroom|iptc|\d', v):
                return r.choice(PATTERNS)
            if v in self.enums:
                return r.choice([*self.enums, v.lower(), v + ' ', 'PAUSED', 'x-' + v.lower(), r.choice(self.enums)])
            return r.choice(TEXTS)
        if isinstance(v, (int, float, str)):
            return r.choice(NUMBERS)
        if isinstance(v, list):
            return r.choice([v + v, v[::-1], v[:1] * 3, v + [self.any_value()], [], {}, {'0': v[:1]}, v[:1] + [dict(reversed(list(v[0].items())))] if v and isinstance(v[0], dict) else v])
        if isinstance(v, dict):
            return r.choice([[v], list(v), {k: v[k] for k in v if r.random() < 0.5}, {**v, r.choice(ADDED): self.any_value()}, {}])
        return self.any_value()

    def broken(self, x):
        r = self.rng
        x = copy.deepcopy(x)
        for _ in range(r.choice([1, 1, 1, 2, 2, 3, 4])):
            if not isinstance(x, (dict, list)) or not x:
                break
            places = self.places(x, [])
            container, key = r.choice(places)
            what = r.random()
            if what < 0.2:
                del container[key]
            elif what < 0.35:
                container[key] = self.any_value()
            elif what < 0.6:
                container[key] = self.near(container[key])
            elif what < 0.8:
                objects = [x] + [c[k] for c, k in places if isinstance(c[k], dict)]
                o = r.choice(objects)
                o[r.choice(ADDED)] = r.choice([lambda: self.any_value(), lambda: copy.deepcopy(container[key])])()
            elif what < 0.85:
                other, k = r.choice(places)
                container[key] = copy.deepcopy(other[k])
            elif what < 0.9 and isinstance(x, dict):
                x['som_version'] = r.choice(VERSIONS)
            elif what < 0.93 and isinstance(x, dict):
                x['message_type'] = r.choice(TYPES)
            elif what < 0.95 and isinstance(x, dict) and isinstance(x.get('payload'), dict):
                x['payload']['message_type'] = r.choice(TYPES)
            elif isinstance(container, dict):
                container[r.choice([key + 's', key.upper(), key + ' ', *ADDED])] = container.pop(key)
            else:
                container.insert(key, self.any_value())
        if r.random() < 0.15 and isinstance(x, dict):
            x['som_version'] = r.choice(['1.1.0', '1.2.0', '1.10.3'])
        return x if r.random() > 0.003 else self.any_value()


def constraints(node, names=False):
    """A schema without what only people read, its members in any order."""
    if isinstance(node, dict):
        return {k: constraints(v, not names and k in ('properties', 'patternProperties', '$defs')) for k, v in node.items()
                if names or k not in ('title', 'description', 'examples')}
    return [constraints(x) for x in node] if isinstance(node, list) else node


def text(x):
    return re.sub(r'"@number@([^"@]*)@"', r'\1', json.dumps(x))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--som', required=True)
    ap.add_argument('--sdk')
    ap.add_argument('--cases', type=int, default=20000)
    ap.add_argument('--seed', type=int, default=1)
    ap.add_argument('--show', type=int, default=10, help='how many differences to print')
    ap.add_argument('--width', type=int, default=600, help='how much of a message to print')
    o = ap.parse_args()
    sys.set_int_max_str_digits(0)
    rng = random.Random(o.seed)
    here = os.path.dirname(os.path.abspath(__file__))
    reference = Reference(os.path.join(o.som, 'schema'))
    strange = []
    for name, theirs in reference.schemas.items():
        with open(os.path.join(here, '..', 'schemas', f'{name}.schema.json'), encoding='utf-8') as f:
            if constraints(json.load(f)) != constraints(theirs):
                strange.append(name)
    print(f'{len(reference.schemas)} schema files, with other constraints than the published: {" ".join(strange) or "-"}')
    published = examples(os.path.join(o.som, 'examples'))
    maker = Maker(rng, reference.schemas)
    cases = [(name, text(x), must) for name, x, must in published]
    for n in range(o.cases):
        if rng.random() < 0.5:
            base, x, _ = rng.choice(published)
        else:
            base, x = 'made', maker.envelope()
        if base == 'made' and rng.random() < 0.05:
            cases.append((f'{n} from the schema', text(x), None))
        else:
            cases.append((f'{n} from {base}', text(maker.broken(x)), None))

    command = ['cargo', 'run', '--release', '-q', '-p', 'storybus-som', '--example', 'violations']
    run = lambda *args, **kw: subprocess.run([*command, *args], check=True, stdout=subprocess.PIPE, text=True, encoding='utf-8',
                                             cwd=here, **kw).stdout
    known = set(run('--', '--rules').split())
    answers = run(input=''.join(t + '\n' for _, t, _ in cases)).splitlines()
    assert len(answers) == len(cases), (len(answers), len(cases))

    if o.sdk:
        with open(o.sdk, encoding='utf-8') as f:
            listed = json.load(f)['cases']
        by_name = {name: json.loads(answer) for (name, _, must), answer in zip(cases, answers) if must is not None}
        for case in listed:
            rules = sorted({v[0] for v in by_name[case['file']] if v})
            if rules != case['expect'].get('rules', []):
                strange.append(case['id'])
                print(f'SDK case {case["id"]}: {rules}, expected {case["expect"]}')
        print(f'{len(listed)} cases of the SDK')

    counts, met, differences = collections.Counter(), collections.Counter(), 0
    for (name, t, must), answer in zip(cases, answers):
        ours = json.loads(answer)
        cut = ours.index(None) if None in ours else len(ours)
        ours = sorted(map(tuple, ours[:cut])), sorted(map(tuple, ours[cut + 1:]))
        theirs = reference.judge(t)
        counts['refused' if theirs[0] else 'accepted with warnings' if theirs[1] else 'accepted'] += 1
        counts['violations'] += len(theirs[0]) + len(theirs[1])
        met.update(rule for side in theirs for rule, _ in side)
        if ours != theirs or must is not None and must == bool(theirs[0]):
            differences += 1
            if differences <= o.show:
                print(f'DIFFERENT {name}\n  ours   {ours}\n  theirs {theirs}\n  {t[:o.width]}')
    unmet = sorted(known - set(met))
    surplus = sorted(r for r in met if r.split('.')[0] in NAMES and r not in known)
    print(f'{len(published)} published examples, {o.cases} made from them and the schemas (seed {o.seed}): ' + ', '.join(f'{v} {k}' for k, v in sorted(counts.items())))
    print(f'{len(known)} schema rules, {len(unmet)} never met: {" ".join(unmet) or "-"}; met and not named by schema_rules(): {" ".join(surplus) or "-"}')
    print(f'{differences} differences')
    return 1 if differences or unmet or surplus or strange else 0


if __name__ == '__main__':
    sys.exit(main())
